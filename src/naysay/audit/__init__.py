"""Audit: before any training, what the complementary labels are like, and what to do about it.

`audit(comp, features=..., table=...)` looks at counts, coverage, marginals, annotators, options, duplicates and,
through neighbours, at noise and bias, without a single ordinary label. The result prints (`as_text`), becomes JSON
(`as_dict`) and HTML (`as_html`, `audit_page`).

`look` asks for all of it: what can be counted (`counts`), who gave the labels (`annotators`), what neighbours say
(`naysay.estimation`); then what to do about it (`advice`). `content` says it, for a page and a terminal alike.
"""

from naysay.audit.advice import refuse_ordinary
from naysay.audit.look import Audit, audit, audit_page
from naysay.report.content import Advice

__all__ = ["Advice", "Audit", "audit", "audit_page", "refuse_ordinary"]
