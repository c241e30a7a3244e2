// Returns the texts of the page whose contrast is below what WCAG 2.2 AA asks
// for: 4.5, or 3 for large ones.
(() => {
  const parse = (color) => {
    const n = color.match(/[\d.]+/g).map(Number);
    return { r: n[0], g: n[1], b: n[2], a: n[3] ?? 1 };
  };
  const over = (top, below) => ({
    r: top.r * top.a + below.r * (1 - top.a), g: top.g * top.a + below.g * (1 - top.a), b: top.b * top.a + below.b * (1 - top.a), a: 1,
  });
  const light = ({ r, g, b }) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const backdrop = (element) => {
    if (!element) return { r: 255, g: 255, b: 255, a: 1 };
    const own = parse(getComputedStyle(element).backgroundColor);
    return own.a === 1 ? own : over(own, backdrop(element.parentElement));
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({ visibilityProperty: true }) || element.closest(".hidden, .skip, option, noscript")) continue;
    seen++;
    const style = getComputedStyle(element);
    const below = backdrop(element);
    const [a, b] = [light(over(parse(style.color), below)), light(below)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (contrast < (large ? 3 : 4.5)) found.push(`${contrast.toFixed(2)} ${node.data.trim()} (${style.color})`);
  }
  return seen < 50 ? [`only ${seen} texts are there`] : found;
})()
