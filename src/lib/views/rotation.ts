// The output of `rotate` at its end.

import { pairs, type Block } from './block.ts';

/** The part of the op's result that is shown. */
export interface RotationView {
  key: string;
  previousKey: string;
  previousEnds: string;
  spaces: number;
  leftOut: readonly { space: string; guid: string }[];
}

export function renderRotation({ key, previousKey, previousEnds, spaces, leftOut }: RotationView): Block[] {
  const without = leftOut.map(({ space, guid }) => `${space} (namespace ${guid})`).join(', ');
  return [
    pairs(['key:', key], ['spaces renewed:', String(spaces)], ...(without === '' ? [] : [['not renewed:', without] as [string, string]]), [
      'previous key:',
      `${previousKey}, valid until ${previousEnds}`,
    ]),
  ];
}
