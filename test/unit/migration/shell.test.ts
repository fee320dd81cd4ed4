import { describe, expect, it } from 'vitest';
import { shellCommands } from '../../../src/lib/migration/shell.ts';

/** `LINE: words`, a bar between the words. */
const read = (...lines: string[]): string[] =>
  shellCommands(lines.join('\n')).map(({ line, words }) => `${line}: ${words.map(({ text }) => text).join('|')}`);

describe('the commands of a script', () => {
  it.each([
    ['one per line', ['cf push', 'cf apps'], ['1: cf|push', '2: cf|apps']],
    ['after separators', ['cd x && cf push; cf apps | grep a || true &'], ['1: cd|x', '1: cf|push', '1: cf|apps', '1: grep|a', '1: true']],
    ['without comments', ['# cf push', 'cf apps # and cf push', 'cf a#b'], ['2: cf|apps', '3: cf|a#b']],
    ['over several lines', ['cf push app \\', '  -m 1G \\', '  -i 2', 'ls'], ['1: cf|push|app|-m|1G|-i|2', '4: ls']],
    ['with quotes', [`cf set-env a 'b c' "d e"f g\\ h`], ['1: cf|set-env|a|b c|d ef|g h']],
    ['after variables', ['A=1 B="x y" cf push', 'C=2'], ['1: cf|push']],
    [
      'in substitutions',
      ['GUID=$(cf app x --guid)', 'echo "a $(cf org o) `cf space s`"'],
      ['1: cf|app|x|--guid', '2: echo|a $(cf org o) `cf space s`', '2: cf|org|o', '2: cf|space|s'],
    ],
    ['in nested substitutions', ['x=$(echo "$(cf app "$(cat f)")")'], ['1: echo|$(cf app "$(cat f)")', '1: cf|app|$(cat f)', '1: cat|f']],
    ['in process substitutions', ['diff <(cf env a) b'], ['1: diff|<(cf env a)|b', '1: cf|env|a']],
    ['in arrays', ['A=($(cf apps) cf push)', 'cf a'], ['1: cf|apps', '2: cf|a']],
    ['after keywords', ['if ! cf app a; then cf push; else cf start a; fi'], ['1: cf|app|a', '1: cf|push', '1: cf|start|a']],
    [
      'in loops',
      ['for a in x y; do', 'cf delete $a', 'done', 'while cf app a; do sleep 1; done'],
      ['1: for|a|in|x|y', '2: cf|delete|$a', '4: cf|app|a', '4: sleep|1'],
    ],
    ['in functions and groups', ['f() { cf push; }', '(cf apps)', '{ cf a; }'], ['1: f', '1: cf|push', '2: cf|apps', '3: cf|a']],
    [
      'in a case',
      ['x=$(case $a in b) cf b;; (c|d) cf c;; esac)', 'cf e'],
      ['1: case|$a|in|b', '1: cf|b', '1: c', '1: d', '1: cf|c', '1: esac', '2: cf|e'],
    ],
    ['without redirections', ['cf push >log 2>&1 <in &>all 3<<<"cf x"', '2>/dev/null cf apps'], ['1: cf|push', '2: cf|apps']],
    ['beside arithmetic', ['(( a < b )); echo $(( 1 + (2) )) && cf a'], ['1: echo|$(( 1 + (2) ))', '1: cf|a']],
    [
      'with expressions of a CI',
      ['cf push ${{ inputs.app }} "${A:-$(cf b)}" ${B%\'}\'}'],
      ["1: cf|push|${{ inputs.app }}|${A:-$(cf b)}|${B%'}'}", '1: cf|b'],
    ],
    [
      'in expansions and arithmetic',
      ['a="${B:-`cf x`}"', 'echo ${1?"try \\`cf y\' f"}', 'c="$(( $(cf z) + 3))"', '((cf p; cf q) | cf r)'],
      ['1: cf|x', `2: echo|\${1?"try \\\`cf y' f"}`, '3: cf|z', '4: cf|p', '4: cf|q', '4: cf|r'],
    ],
    ['with empty words', ['cf push ""'], ['1: cf|push|']],
  ])('are found %s', (_, lines, expected) => {
    expect(read(...lines)).toEqual(expected);
  });

  it('are not the lines of a heredoc, but what these substitute', () => {
    const lines = ['cat <<EOF > f', 'cf push', "it's $(cf app a)", 'EOF', "cat <<-'X' && cf b", '\t$(cf c)', '\tX', 'cf d'];
    expect(read(...lines)).toEqual(['1: cat', '3: cf|app|a', '5: cat', '5: cf|b', '8: cf|d']);
    const [cat] = shellCommands(lines.join('\n'));
    expect(cat?.input).toEqual([{ text: "cf push\nit's $(cf app a)", line: 2 }]);
  });

  it('know which words are expanded, and which are quoted', () => {
    const [command] = shellCommands(`cf "$A" 'b$c' d\\$e $ "f"`);
    expect(command?.words.map(({ isExpanded, isQuoted }) => [isExpanded, isQuoted])).toEqual([
      [false, false],
      [true, true],
      [false, true],
      [false, false],
      [false, false],
      [false, true],
    ]);
  });

  it.each([
    ['cf push "a'],
    ["cf push 'a"],
    ['cf push $(a'],
    ['cf push ${a'],
    ['cf push `a'],
    ['cf <<EOF\na'],
    ['cf push $(('],
    ['cf push \\'],
    ['A=('],
    [')('],
    ['$(('.repeat(10_000)],
    ['$('.repeat(10_000)],
    ['`'.repeat(9999)],
  ])('of an unfinished script end: %j', (script) => {
    expect(Array.isArray(shellCommands(script.slice(0, 30_000)))).toBe(true);
  });
});
