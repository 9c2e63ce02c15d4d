"""How the page of ``windrow demo cameras`` looks, and what it does under the pointer."""

STYLE = """
:root { color-scheme: light dark; --back: #f6f5f2; --card: #fff; --text: #1d2129; --soft: #667; --line: #dcdad4;
  --n0: #3f6ad8; --n1: #e08a2e; --n2: #2f9e77; --n3: #b552a8 }
@media (prefers-color-scheme: dark) {
  :root { --back: #14171c; --card: #1e2229; --text: #e9eaee; --soft: #9aa1ad; --line: #333943 } }
* { box-sizing: border-box }
body { font: 16px/1.5 system-ui, sans-serif; background: var(--back); color: var(--text); margin: 0 auto;
  max-width: 74rem; padding: 2.5rem 1.5rem }
h1 { font-size: 2.1rem; line-height: 1.15; margin: 0 0 .6rem; letter-spacing: -.02em }
h2 { font-size: 1.15rem; margin: 0 0 .2rem }
p { color: var(--soft); margin: .2rem 0 1rem; max-width: 46rem }
section { margin-top: 2.6rem }
.away { position: absolute }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(12rem, 1fr)); gap: .8rem; margin-top: 1.4rem }
.tiles div { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: .8rem 1rem }
.tiles b { display: block; font-size: 1.9rem; line-height: 1.2; font-variant-numeric: tabular-nums }
.tiles span { color: var(--soft); font-size: .9rem }
.tiles div:last-child b { color: #2a9d5c } .tiles.wrong div:last-child b { color: #d0333d }
.time { position: relative; background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  overflow: hidden }
.scroll { overflow-x: auto; padding: .6rem 0 }
.lanes { position: absolute; inset: 0 auto 0 0; width: 72px; background: var(--card); z-index: 1;
  border-right: 1px solid var(--line) }
.lanes div { position: absolute; left: 1rem; font-weight: 600; font-size: .9rem; margin-top: .2rem }
.time svg { display: block } .time text, .histogram text { fill: var(--soft); font-size: 11px }
.tick { stroke: var(--line) } .line { fill: none; stroke-width: 2; opacity: .55 }
.alone { opacity: .32 } .hit, .card { cursor: default }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(21rem, 1fr)); gap: .8rem }
.card { background: var(--card); border: 1px solid var(--line); border-left: 5px solid var(--c); border-radius: 12px;
  padding: .8rem }
.card div { display: flex; align-items: flex-start; justify-content: space-between }
.card i { align-self: center; font-style: normal; font-size: .85rem; color: var(--soft); margin-bottom: 1.2rem }
.card p { margin: .1rem 0 0; font-size: .9rem } figure { margin: 0; text-align: center }
figcaption { font-size: .8rem; color: var(--soft); font-variant-numeric: tabular-nums }
.pic { border-radius: 6px; overflow: hidden; display: block } .pic image, .time image { image-rendering: pixelated }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(26rem, 1fr)); gap: 2rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th { text-align: left; font-weight: 500; white-space: nowrap; width: 5rem }
td { padding: .25rem .5rem; text-align: right }
td:nth-child(2) { width: 60% }
.bar { display: block; height: 1.1rem; border-radius: 4px }
span.n0 { background: var(--n0) } span.n1 { background: var(--n1) } span.n2 { background: var(--n2) }
span.n3 { background: var(--n3) } rect.n0 { fill: var(--n0) } rect.n1 { fill: var(--n1) } rect.n2 { fill: var(--n2) }
rect.n3 { fill: var(--n3) }
.histogram { width: 100%; display: block } .limit { stroke: var(--text); stroke-dasharray: 4 3 }
.pairs { display: flex; flex-wrap: wrap; gap: .8rem; margin-top: .6rem }
.pairs > div { display: grid; grid-template-columns: 64px 64px; gap: 3px; background: var(--card); padding: .5rem;
  border: 1px solid var(--line); border-radius: 12px }
.pairs p { grid-column: 1 / 3; margin: .1rem 0 0; font-size: .8rem; line-height: 1.35 }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 1rem; overflow-x: auto;
  font-size: .85rem }
.dim .line { opacity: .08 } .dim .hit { opacity: .25 } .dim .alone { opacity: .12 }
.dim .line.on { opacity: 1; stroke-width: 4 } .dim .hit.on { opacity: 1 }
.card.on { outline: 2px solid var(--c) }
"""

# What belongs to a match is shown together: in the timeline and among the cards.
SCRIPT = """
const time = document.querySelector('.time'), number = e => [...e.classList].find(c => /^m\\d+$/.test(c));
for (const e of document.querySelectorAll('.hit, .card')) {
  const all = document.querySelectorAll('.' + number(e));
  e.addEventListener('mouseenter', () => { time.classList.add('dim'); all.forEach(x => x.classList.add('on')) });
  e.addEventListener('mouseleave', () => { time.classList.remove('dim'); all.forEach(x => x.classList.remove('on')) });
  e.addEventListener('click', () => {
    const to = document.querySelector((e.matches('.card') ? '.hit.' : '.card.') + number(e));
    to.scrollIntoView({ behavior: 'smooth', block: 'center', inline: 'center' }) });
}
"""
