// The width of a text in terminal cells: ANSI codes have none, wide East Asian characters and emoji two.

import { stripVTControlCharacters } from 'node:util';

/** East Asian Width W and F (UAX #11), without emoji. */
const wide =
  /[\u1100-\u115f\u2329\u232a\u2630-\u2637\u268a-\u268f\u2e80-\u303e\u3041-\u3247\u3250-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18df2}\u{1aff0}-\u{1b2fb}\u{1d300}-\u{1d376}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}]/u;
/** Emoji that are coloured pictures by default, and those that a variation selector makes so. */
const emoji = /\p{Emoji_Presentation}|\ufe0f/u;
/** No cell of their own: combining marks, format and control characters. */
const zero = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]+$/u;
const ascii = /^[\x20-\x7e]*$/;
let segmenter: Intl.Segmenter | undefined;

/** Cells of one grapheme. */
function cells(grapheme: string): number {
  if (zero.test(grapheme)) return 0;
  return wide.test(grapheme) || emoji.test(grapheme) ? 2 : 1;
}

/** Display width of one line. */
export function displayWidth(text: string): number {
  if (ascii.test(text)) return text.length;
  segmenter ??= new Intl.Segmenter();
  let width = 0;
  for (const { segment } of segmenter.segment(stripVTControlCharacters(text))) width += cells(segment);
  return width;
}

/** `text` with blanks up to `width` cells. */
export function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - displayWidth(text)));
}
