// The output of `rotate` at its end.

import { pairs, type Block } from './block.ts';

/** The part of the op's result that is shown. */
export interface RotationView {
  key: string;
  previousKey: string;
  previousEnds: string;
  spaces: number;
}

export function renderRotation({ key, previousKey, previousEnds, spaces }: RotationView): Block[] {
  return [pairs(['key:', key], ['spaces renewed:', String(spaces)], ['previous key:', `${previousKey}, valid until ${previousEnds}`])];
}
