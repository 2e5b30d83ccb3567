"""An audit as HTML: a <section> that a report embeds, or a small page of its own. No network, no script.

Names come from files and may hold HTML: jinja2 escapes everything. Colours are shades of the page's own text colour, so
the section fits a light and a dark page alike; bars and shades repeat what the numbers say, so nothing is told by
colour alone.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

from naysay.audit.shares import size

if TYPE_CHECKING:
    from naysay.audit.result import Audit

ROWS = 50  # annotators and classes shown; the JSON form has all
MATRIX = 30  # classes up to which T is shown

STYLE = """
.naysay-audit { font-variant-numeric: tabular-nums; line-height: 1.5 }
.naysay-audit .wide { overflow-x: auto }
.naysay-audit table { border-collapse: collapse; margin: .5rem 0 }
.naysay-audit caption { text-align: left; font-weight: 600; padding: .3rem 0 }
.naysay-audit th, .naysay-audit td { padding: .15rem .6rem; border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent) }
.naysay-audit th, .naysay-audit td { white-space: nowrap }
.naysay-audit th[title], .naysay-audit td.text { max-width: 14rem; overflow: hidden; text-overflow: ellipsis }
.naysay-audit th { text-align: left; font-weight: 600 }
.naysay-audit td { text-align: right }
.naysay-audit td.text { text-align: left }
.naysay-audit p, .naysay-audit li { overflow-wrap: anywhere }
.naysay-audit .matrix th[scope=col] { max-width: 4rem }
.naysay-audit .bar { display: inline-block; height: .7em; min-width: 1px; background: currentColor; opacity: .5 }
.naysay-audit td.bars { text-align: left; width: 8rem; min-width: 8rem }
.naysay-audit .matrix td { background: color-mix(in srgb, currentColor calc(var(--p) * 60%), transparent) }
.naysay-audit ul.advice { list-style: none; padding: 0 }
.naysay-audit ul.advice li { margin: .5rem 0; padding-left: .8rem; border-left: .3rem solid #8888 }
.naysay-audit ul.advice li.act { border-left-color: #d33 }
.naysay-audit ul.advice li.look { border-left-color: #c80 }
.naysay-audit ul.advice strong { text-transform: capitalize }
.naysay-audit .note { opacity: .8 }
"""

SECTION = """
{%- macro share(s) %}{{ "%.1f"|format(100 * s.value) }} % <span class="note">[{{ "%.1f"|format(100 * s.low) }},
 {{ "%.1f"|format(100 * s.high) }}]</span>{% endmacro -%}
{%- macro fit(f) %}effect w = {{ "%.3f"|format(f.effect) }} [{{ "%.3f"|format(f.effect_low) }}, {{ "%.3f"|format(f.effect_high) }}],
 {{ size(f.effect) }}; chi-square {{ "%.1f"|format(f.chi2) }} on {{ f.df }}, p
 {{ "&lt; 0.0001"|safe if f.p_value < 0.0001 else "= %.4f"|format(f.p_value) }}{% endmacro -%}
<section class="naysay-audit" aria-label="Audit of the labels">
<style>{{ style|safe }}</style>
<p>{{ "{:,}".format(a.coverage.items) }} items, {{ a.coverage.classes }} classes, {{ "{:,}".format(a.coverage.labels) }} labels.
 <span class="note">Intervals in [ ] are 95 %.</span></p>
<h3>What to do</h3>
<ul class="advice">
{% for advice in a.advice %}<li class="{{ advice.level }}"><strong>{{ advice.level }}</strong>: {{ advice.text }}</li>
{% endfor %}</ul>

<h3>Labels per item</h3>
<div class="wide" role="region" aria-label="Labels per item" tabindex="0"><table><caption>Items by their number of labels</caption>
<tr><th scope="row">labels</th>{% for n in a.coverage.by_labels %}<td>{{ loop.index0 }}
{{- "+" if loop.last and a.coverage.most > loop.index0 }}</td>{% endfor %}</tr>
<tr><th scope="row">items</th>{% for n in a.coverage.by_labels %}<td>{{ "{:,}".format(n) }}</td>{% endfor %}</tr>
</table></div>
<p>{{ "%.2f"|format(a.coverage.mean) }} labels per labelled item; {{ share(a.coverage.unlabelled) }} of the items have none.
{{ "{:,}".format(a.coverage.solved) }} have all classes but one named, {{ "{:,}".format(a.coverage.contradicting) }} have every class named,
 a contradiction{% if a.coverage.contradicting_items %}: {{ a.coverage.contradicting_items|join(", ") }}{% endif %}.
{% if a.coverage.most_items %}The most, {{ a.coverage.most }}, have {{ a.coverage.most_items|join(", ") }}.{% endif %}</p>

<h3>Classes</h3>
<div class="wide" role="region" aria-label="Classes" tabindex="0"><table><caption>How often each class is named</caption>
<thead><tr><th scope="col">class</th><th scope="col">labels</th><th scope="col">share</th>
{%- if a.shown %}<th scope="col">shown</th><th scope="col">named when shown</th>{% endif %}<th scope="col"></th></tr></thead>
{% for row in a.marginals.classes[:rows] %}<tr><th scope="row" title="{{ row.name }}">{{ row.name }}</th>
<td>{{ "{:,}".format(row.named.count) }}</td>
<td>{{ share(row.named) }}{{ " above ceiling" if row.above_ceiling }}</td>
{%- if a.shown %}<td>{{ "{:,}".format(a.shown.named[loop.index0].of) }}</td><td>{{ share(a.shown.named[loop.index0]) }}</td>{% endif %}
<td class="bars" aria-hidden="true"><span class="bar" style="width: {{ "%.1f"|format(100 * row.named.value / most) }}%"></span></td></tr>
{% endfor %}</table></div>
{% if a.classes|length > rows %}<p>… and {{ a.classes|length - rows }} more.</p>{% endif %}
<p>{{ a.marginals.meaning }} <span class="note">Against even: {{ fit(a.marginals.uniform) }}.</span></p>
{% if a.shown %}<p>Among the options shown, against even choice: {{ fit(a.shown.evenly) }}.
 By place in the list, first to last: {{ a.shown.positions|join(", ") }}; {{ fit(a.shown.position) }}.
 {{ "{:,}".format(a.shown.not_shown) }} labels name a class that was not shown.</p>{% endif %}

<h3>Noise and bias</h3>
{% if a.neighbourhood %}{% set n = a.neighbourhood %}
<p>Estimated from neighbours, without ordinary labels: {{ n.neighbors }} neighbours each, of
 {{ "all" if n.rows == n.labelled else "a random sample of {:,} of".format(n.rows) }} {{ "{:,}".format(n.labelled) }} labelled items;
 {{ "{:,}".format(n.clear) }} have clear neighbours.</p>
{% if n.told %}
<table><caption>Labels that name the true class</caption>
<tr><th scope="row">where neighbours are clear</th><td>{{ share(n.noise) }}</td></tr>
<tr><th scope="row">everywhere</th><td>{{ share(n.noise_everywhere) }}</td></tr>
<tr><th scope="row">if labels were named at random</th><td>{{ "%.1f"|format(100 * n.random) }} %</td></tr></table>
<p>The estimate leans high: features that mix classes look like noise. Read it as “at most”; the intervals cover counting only.</p>
<p>Bias, how unevenly the wrong classes of one class are named: {{ fit(n.bias) }}.</p>
{% if a.classes|length <= matrix %}
<div class="wide" role="region" aria-label="Estimated transition" tabindex="0"><table class="matrix">
<caption>T, estimated: of items likely of the row's class, per cent of labels that name the column's</caption>
<tr><td></td>{% for name in a.classes %}<th scope="col" title="{{ name }}">{{ name }}</th>{% endfor %}</tr>
{% for row in n.transition %}<tr><th scope="row" title="{{ a.classes[loop.index0] }}">{{ a.classes[loop.index0] }}</th>
{%- for p in row %}<td style="--p: {{ "%.3f"|format(p) }}">{{ "%.0f"|format(100 * p) }}</td>{% endfor %}</tr>
{% endfor %}</table></div>{% endif %}
{% if n.suspects %}<p>Suspected items, at random, to look at:
 {% for s in n.suspects %}{{ s.item }} (not {{ s.named }}?){{ ", " if not loop.last }}{% endfor %}.</p>{% endif %}
{% else %}<p>The neighbours say nothing about an item's labels, so neither noise nor bias can be estimated from them.</p>{% endif %}
{% else %}{% for reason in a.not_told %}<p>{{ reason }}</p>{% endfor %}{% endif %}

{% if a.annotators %}<h3>Annotators</h3>
{% if a.annotators.agreement %}<p>Two annotators of one item name the same class in {{ share(a.annotators.agreement) }} of
 {{ "{:,}".format(a.annotators.agreement.of) }} pairs; independent, even naming would give {{ "%.1f"|format(100 * a.annotators.chance) }} %.
 Different classes are no contradiction.</p>{% endif %}
<div class="wide" role="region" aria-label="Annotators" tabindex="0"><table><caption>Annotators, those who stand out first</caption>
<thead><tr><th scope="col">annotator</th><th scope="col">labels</th><th scope="col">items</th><th scope="col">favourite</th>
<th scope="col">agrees with others</th><th scope="col">names what neighbours point to</th><th scope="col">stands out</th></tr></thead>
{% for row in a.annotators.rows[:rows] %}<tr><th scope="row" title="{{ row.name }}">{{ row.name }}</th>
<td>{{ "{:,}".format(row.labels) }}</td>
<td>{{ "{:,}".format(row.items) }}</td><td class="text">{{ row.favourite }}, {{ "%.0f"|format(100 * row.favourite_share.value) }} %</td>
<td>{% if row.agreement %}{{ "%.0f"|format(100 * row.agreement.value) }} %{% endif %}</td>
<td>{% if row.suspected %}{{ share(row.suspected) }}{% endif %}</td>
<td class="text">{{ "contradicts neighbours" if row.contradicts_neighbours }} {{ "one-sided" if row.one_sided }}</td></tr>
{% endfor %}</table></div>
{% if a.annotators.rows|length > rows %}<p>… and {{ "{:,}".format(a.annotators.rows|length - rows) }} more.</p>{% endif %}
{% if a.annotators.unnamed %}<p>{{ "{:,}".format(a.annotators.unnamed) }} labels name no annotator.</p>{% endif %}{% endif %}

{% set d = a.duplicates %}{% if d.repeated_labels is not none or d.copies is not none %}<h3>Duplicates</h3>
<ul>{% if d.repeated_labels is not none %}<li>{{ "{:,}".format(d.repeated_labels) }} rows of the table repeat another's
 {{ "item, annotator and label" if d.by_whom else "item and label (no annotators tell them apart)" }}.</li>{% endif %}
{% if d.copies is not none %}<li>{{ "{:,}".format(d.copies) }} items copy another's features exactly, in
 {{ "{:,}".format(d.groups) }} groups;
 {{ "{:,}".format(d.conflicting) }} groups contradict themselves.
 {% for names in d.examples[:3] %}Such as {{ names|join(", ") }}. {% endfor %}</li>{% endif %}</ul>{% endif %}
</section>
"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Audit of complementary labels</title>
<style>:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }</style>
</head><body><main><h1>Audit of complementary labels</h1>
{{ section|safe }}
</main></body></html>
"""


def section(audit: "Audit") -> str:
    """The audit as one self-contained <section>."""
    most = max(row.named.value for row in audit.marginals.classes)
    return _render(SECTION, a=audit, style=STYLE, size=size, most=most, rows=ROWS, matrix=MATRIX).strip()


def audit_page(audit: "Audit") -> str:
    """The audit as a complete HTML page."""
    return _render(PAGE, section=section(audit))


def _render(source: str, **values: Any) -> str:
    return str(_template(source).render(**values))


@cache
def _template(source: str) -> Any:
    from jinja2 import Environment, StrictUndefined

    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(source)
