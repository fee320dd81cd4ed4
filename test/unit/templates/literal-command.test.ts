// What a shell in a container gets of a command: Kubernetes expands it before.

import { expect, test } from 'vitest';
import { literalCommand } from '../../../src/templates/pod-env.ts';

/** As k8s.io/kubernetes/third_party/forked/golang/expansion does. */
function expanded(input: string, variables: Readonly<Record<string, string>>): string {
  let text = '';
  let at = 0;
  while (at < input.length) {
    const [char = '', next] = [input[at], input[at + 1]];
    const end = next === '(' ? input.indexOf(')', at) : -1;
    if (char !== '$' || next === undefined) {
      text += char;
      at += 1;
    } else if (next === '$') {
      text += '$';
      at += 2;
    } else if (end > 0) {
      const name = input.slice(at + 2, end);
      text += variables[name] ?? `$(${name})`;
      at = end + 1;
    } else {
      text += char + next;
      at += 2;
    }
  }
  return text;
}

const variables = { PORT: '8080', HOME: '/home/vcap', 'a.b-c': 'x' };

test.each([
  'echo $$',
  'kill -TERM $$ && echo $$$',
  '$$$$',
  'echo $(PORT) $(HOME)/$PORT ${PORT}',
  'echo $$(PORT)',
  'echo $(a.b-c)',
  'echo $(echo $$)',
  'echo $(echo $(PORT)) $$',
  'x=$(nproc); y=$((1 + 1)); z=`date`',
  'an end $',
  'not closed $(echo $$ and $PORT',
  'lines\n$(PORT)\n$$\n',
])('%j reaches the shell as it is written', (text) => {
  expect(expanded(literalCommand(text), variables)).toBe(text);
});

test.each(['exec node server.js', 'echo $PORT ${HOME:-x}', 'sleep $((2 * 3))', 'X="$(date +%s)" bin/run', 'a $ b'])(
  '%j needs no change, so its app keeps its generation',
  (text) => {
    expect(literalCommand(text)).toBe(text);
  },
);
