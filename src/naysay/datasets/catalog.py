"""The sets known by name: what they are, where their files come from, and which function decodes these.

SHA-256 sums are of the published originals, each found alike in several independent public tools. CLCIFAR and ACLCIFAR
have none that could be had with certainty (None): `formats` says what their files must prove instead, and `download`
writes down the sum of the first that was seen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from naysay.datasets import formats
from naysay.datasets.dataset import Array
from naysay.datasets.download import Source

Decode = Callable[..., dict[str, Array]]
KRIZHEVSKY = "Krizhevsky, Learning multiple layers of features from tiny images, 2009"


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
    sources: tuple[Source, ...] = ()

    @property
    def embedded(self) -> bool:
        return self.decode is not None and not self.sources


def _mnist(title: str, classes: tuple[str, ...], licence: str, citation: str, sources: tuple[Source, ...]) -> Entry:
    return Entry(title, (28, 28), 60_000, 10_000, classes, licence, citation, formats.decode_idx, sources)


def _cifar(title: str, classes: tuple[str, ...], decode: Decode, *sources: Source, by: str = KRIZHEVSKY) -> Entry:
    return Entry(title, (32, 32, 3), 50_000, 10_000, classes, "none stated", by, decode, sources)


def _cifar_file(n: int, total: str) -> Source:
    file = f"cifar-{n}-python.tar.gz"
    return Source(file, (f"https://www.cs.toronto.edu/~kriz/{file}",), total)


def _idx(name: str, homes: tuple[str, ...], *sums: str) -> tuple[Source, ...]:
    files = [f"{part}-{what}-ubyte.gz" for part in ("train", "t10k") for what in ("images-idx3", "labels-idx1")]
    pairs = zip(files, sums, strict=True)
    return tuple(Source(f"{name}/{file}", tuple(home + file for home in homes), total) for file, total in pairs)


def _annotated(
    name: str, base: Entry, noise: float, key: str, *, who: str, citation: str, mirrors: Sequence[str] = ()
) -> Entry:
    """The set `base` with labels that somebody gave: a file on Google Drive under `key`, and perhaps elsewhere."""
    drive, file = f"https://drive.usercontent.google.com/download?id={key}&export=download&confirm=t", f"{name}.pkl"
    labels = Source(file, (drive, *(mirror + file for mirror in mirrors)), None)
    assert base.decode is not None
    title = f"cifar{len(base.classes)} with three complementary labels by {who}"
    decode = partial(formats.decode_annotated, base=base.decode, noise=noise)
    return _cifar(title, base.classes, decode, labels, *base.sources, by=citation)


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
CLIMAGE = "Wang et al., CLImage: human-annotated datasets for complementary-label learning, arXiv 2305.08295"
POTENTIAL = "The unexplored potential of vision-language models for generating ... complementary-label learning data"
ACLIMAGE = f"{POTENTIAL}, openreview LDN9Cy1qKa"

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
        "https://fashion-mnist.s3.eu-central-1.amazonaws.com/",
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    ),
    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
    "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
    "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
)
KMNIST_FILES = _idx(
    "kmnist",
    ("https://codh.rois.ac.jp/kmnist/dataset/kmnist/",),
    "51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4",
    "e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17",
    "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5",
    "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c",
)
CIFAR_10_FILE = _cifar_file(10, "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce")
CIFAR_100_FILE = _cifar_file(100, "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7")
CIFAR10 = _cifar("photographs, 32 x 32", CIFAR_10, formats.decode_cifar10, CIFAR_10_FILE)
CIFAR20 = _cifar("CIFAR-100 under CLCIFAR20's 20 classes", CIFAR_20, formats.decode_cifar20, CIFAR_100_FILE)
STANDARD = "CIFAR-100 under its published 20 superclasses"
DIGITS, PARTIAL = "handwritten digits, 8 x 8, embedded", "kmnist's first 7,011 training images"
_by_people = partial(_annotated, who="people", citation=CLIMAGE, mirrors=(S3,))
_by_llava = partial(_annotated, who="LLaVA", citation=ACLIMAGE)

CATALOG: dict[str, Entry] = {
    "digits": Entry(DIGITS, (8, 8), 1_442, 355, TEN, "CC BY 4.0", ALPAYDIN, formats.decode_digits),
    "mnist": _mnist("handwritten digits, 28 x 28", TEN, "CC BY-SA 3.0", LECUN, MNIST_FILES),
    "fashion-mnist": _mnist("clothes, 28 x 28", CLOTHES, "MIT", XIAO, FASHION_FILES),
    "kmnist": _mnist("cursive Japanese characters, 28 x 28", KUZUSHIJI, "CC BY-SA 4.0", CLANUWAT, KMNIST_FILES),
    "kmnist-partial": Entry(PARTIAL, (28, 28), 7_011, 10_000, TEN, "CC BY-SA 4.0", CLANUWAT, None),
    "cifar10": CIFAR10,
    "cifar20": CIFAR20,
    "cifar20-standard": _cifar(STANDARD, CIFAR_20_STANDARD, formats.decode_cifar20_standard, CIFAR_100_FILE),
    "clcifar10": _by_people("clcifar10", CIFAR10, 0.0393, "1uNLqmRUkHzZGiSsCtV2-fHoDbtKPnVt2"),
    "clcifar20": _by_people("clcifar20", CIFAR20, 0.0281, "1PhZsyoi1dAHDGlmB4QIJvDHLf_JBsFeP"),
    "aclcifar10": _by_llava("aclcifar10", CIFAR10, 0.0023, "1Tn4-sidFRtJ_Q0M9EJXnUxeodp_hO-wF"),
    "aclcifar20": _by_llava("aclcifar20", CIFAR20, 0.0090, "12MVz5gRKKXrznELt3NholwAmnvvCVJGh"),
}
