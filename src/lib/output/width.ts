// The width of a text in terminal cells: ANSI codes have none, wide East Asian characters and emoji two.

import { stripVTControlCharacters } from 'node:util';

const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u;
const plain = /^[\x20-\x7e]*$/;
let segmenter: Intl.Segmenter | undefined;

/** Cells of one grapheme. */
function cells(grapheme: string): number {
  if (/^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]+$/u.test(grapheme)) return 0;
  return wide.test(grapheme) || /\p{Emoji_Presentation}|\ufe0f/u.test(grapheme) ? 2 : 1;
}

/** Display width of one line. */
export function displayWidth(text: string): number {
  if (plain.test(text)) return text.length;
  segmenter ??= new Intl.Segmenter();
  let width = 0;
  for (const { segment } of segmenter.segment(stripVTControlCharacters(text))) width += cells(segment);
  return width;
}

/** `text` with blanks up to `width` cells. */
export function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - displayWidth(text)));
}
