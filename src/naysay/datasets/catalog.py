"""The sets known by name: what they are, where their files come from, and which function decodes these.

SHA-256 sums are of the published originals, each found alike in several independent public tools. CLCIFAR and ACLCIFAR
have none that could be had with certainty (None): `formats` says what their files must prove instead.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from naysay.datasets import formats
from naysay.datasets.dataset import Array
from naysay.datasets.download import Source

Decode = Callable[..., dict[str, Array]]


@dataclass(frozen=True)
class Entry:
    """A known set: its sizes and one instance's shape; `decode` makes its arrays from the paths of its `sources`."""

    title: str
    shape: tuple[int, ...]
    n_train: int
    n_test: int
    classes: tuple[str, ...]
    licence: str
    citation: str
    decode: Decode | None  # None: made elsewhere, only read from the data folder
    sources: tuple[Source, ...] = ()  # none: the set is embedded


def _mnist(title: str, classes: tuple[str, ...], licence: str, citation: str, sources: tuple[Source, ...]) -> Entry:
    return Entry(title, (28, 28), 60_000, 10_000, classes, licence, citation, formats.decode_idx, sources)


def _cifar(title: str, classes: tuple[str, ...], citation: str, decode: Decode, *sources: Source) -> Entry:
    return Entry(title, (32, 32, 3), 50_000, 10_000, classes, "none stated", citation, decode, sources)


def _idx(name: str, homes: tuple[str, ...], *sums: str) -> tuple[Source, ...]:
    files = [f"{part}-{what}-ubyte.gz" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1")]
    return tuple(
        Source(f"{name}/{file}", tuple(home + file for home in homes), total)
        for file, total in zip(files, sums, strict=True)
    )


def _annotated(file: str, base: Entry, title: str, citation: str, noise: float, key: str, *mirrors: str) -> Entry:
    """The set `base` with labels that somebody gave: a file on Google Drive under `key`, and perhaps elsewhere."""
    drive = f"https://drive.usercontent.google.com/download?id={key}&export=download&confirm=t"
    labels = Source(file, (drive, *(mirror + file for mirror in mirrors)), None)
    assert base.decode is not None
    decode = partial(formats.decode_annotated, base=base.decode, noise=noise)
    return _cifar(title, base.classes, citation, decode, labels, *base.sources)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


TEN = tuple("0123456789")
CLOTHES = _names("T-shirt/top, Trouser, Pullover, Dress, Coat, Sandal, Shirt, Sneaker, Bag, Ankle boot")
KUZUSHIJI = _names("o, ki, su, tsu, na, ha, ma, ya, re, wo")
CIFAR_10 = _names("airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck")
CIFAR_20 = _names(
    "aquatic mammals, fish, flowers, food containers, fruit and vegetables and mushrooms, electrical devices, "
    "furniture, insects, carnivores and bears, man-made buildings, natural scenes, omnivores and herbivores, "
    "medium-sized mammals, invertebrates, people, reptiles, small mammals, trees, transportation vehicles, "
    "non-transport vehicles"
)
CIFAR_20_STANDARD = _names(
    "aquatic mammals, fish, flowers, food containers, fruit and vegetables, household electrical devices, household "
    "furniture, insects, large carnivores, large man-made outdoor things, large natural outdoor scenes, large "
    "omnivores and herbivores, medium-sized mammals, non-insect invertebrates, people, reptiles, small mammals, trees, "
    "vehicles 1, vehicles 2"
)
ALPAYDIN = "Alpaydin and Kaynak, Optical recognition of handwritten digits, UCI, 1998"
LECUN = "LeCun, Bottou, Bengio and Haffner, Gradient-based learning applied to document recognition, 1998"
XIAO = "Xiao, Rasul and Vollgraf, Fashion-MNIST, arXiv 1708.07747"
CLANUWAT = "Clanuwat et al., Deep learning for classical Japanese literature, arXiv 1812.01718"
KRIZHEVSKY = "Krizhevsky, Learning multiple layers of features from tiny images, 2009"
CLIMAGE = "Wang et al., CLImage: human-annotated datasets for complementary-label learning, arXiv 2305.08295"
ACLIMAGE = (
    "The unexplored potential of vision-language models for generating ... complementary-label learning data, "
    "openreview LDN9Cy1qKa"
)

TORONTO = "https://www.cs.toronto.edu/~kriz/"
S3 = "https://clcifar.s3.us-west-2.amazonaws.com/"
MNIST_FILES = _idx(
    "mnist",
    ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"),
    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
)
FASHION_FILES = _idx(
    "fashion-mnist",
    (
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    ),
    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
)
KMNIST_FILES = _idx(
    "kmnist",
    ("http://codh.rois.ac.jp/kmnist/dataset/kmnist/",),
    "51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4",
    "e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17",
    "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5",
    "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c",
)
CIFAR_10_FILE, CIFAR_100_FILE = (
    Source(file, (TORONTO + file,), total)
    for file, total in (
        ("cifar-10-python.tar.gz", "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"),
        ("cifar-100-python.tar.gz", "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"),
    )
)
CIFAR10 = _cifar("photographs, 32 x 32", CIFAR_10, KRIZHEVSKY, formats.decode_cifar10, CIFAR_10_FILE)
CIFAR20 = _cifar("CIFAR-100 under CLCIFAR20's 20 classes", CIFAR_20, KRIZHEVSKY, formats.decode_cifar20, CIFAR_100_FILE)
PEOPLE, LLAVA = "with three complementary labels by people", "with three complementary labels by LLaVA"

CATALOG: dict[str, Entry] = {
    "digits": Entry(
        "handwritten digits, 8 x 8, embedded", (8, 8), 1_442, 355, TEN, "CC BY 4.0", ALPAYDIN, formats.decode_digits
    ),
    "mnist": _mnist("handwritten digits, 28 x 28", TEN, "CC BY-SA 3.0", LECUN, MNIST_FILES),
    "fashion-mnist": _mnist("clothes, 28 x 28", CLOTHES, "MIT", XIAO, FASHION_FILES),
    "kmnist": _mnist("cursive Japanese characters, 28 x 28", KUZUSHIJI, "CC BY-SA 4.0", CLANUWAT, KMNIST_FILES),
    "kmnist-partial": Entry(
        "kmnist's first 7,011 training images", (28, 28), 7_011, 10_000, TEN, "CC BY-SA 4.0", CLANUWAT, None
    ),
    "cifar10": CIFAR10,
    "cifar20": CIFAR20,
    "cifar20-standard": _cifar(
        "CIFAR-100 under its published 20 superclasses",
        CIFAR_20_STANDARD,
        KRIZHEVSKY,
        formats.decode_cifar20_standard,
        CIFAR_100_FILE,
    ),
    "clcifar10": _annotated(
        "clcifar10.pkl", CIFAR10, f"cifar10 {PEOPLE}", CLIMAGE, 0.0393, "1uNLqmRUkHzZGiSsCtV2-fHoDbtKPnVt2", S3
    ),
    "clcifar20": _annotated(
        "clcifar20.pkl", CIFAR20, f"cifar20 {PEOPLE}", CLIMAGE, 0.0281, "1PhZsyoi1dAHDGlmB4QIJvDHLf_JBsFeP", S3
    ),
    "aclcifar10": _annotated(
        "aclcifar10.pkl", CIFAR10, f"cifar10 {LLAVA}", ACLIMAGE, 0.0023, "1Tn4-sidFRtJ_Q0M9EJXnUxeodp_hO-wF"
    ),
    "aclcifar20": _annotated(
        "aclcifar20.pkl", CIFAR20, f"cifar20 {LLAVA}", ACLIMAGE, 0.0090, "12MVz5gRKKXrznELt3NholwAmnvvCVJGh"
    ),
}
