import { parse } from 'yaml';
import { describe, expect, test } from 'vitest';
import { parsePlainYaml } from '../../../src/lib/kube/plain-yaml.ts';

const kubectlWrites = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t==
    server: https://127.0.0.1:6443
  name: kind-kind
contexts:
- context:
    cluster: kind-kind
    namespace: "space"
    user: 'kind-kind'
  name: kind-kind
current-context: kind-kind
kind: Config
preferences: {}
users:
- name: kind-kind
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      args:
      - eks
      - get-token
      - --cluster-name
      - example
      command: aws
      env: null
      interactiveMode: IfAvailable
      provideClusterInfo: false
`;

describe('the reader of plain YAML', () => {
  test('reads what kubectl writes as the YAML library does', () => {
    expect(parsePlainYaml(kubectlWrites)).toEqual(parse(kubectlWrites));
  });

  test.each([
    ['a list deeper than its key', 'a:\n  - b: x1\n    c: d\n  - e: f\n'],
    ['windows line ends and a document start', '---\r\na: b\r\nc:\r\n  d: e\r\n'],
    ['comments on their own lines', '# top\na: b\n  # inside\nc: d\n'],
    ['a key without a value', 'a:\nb: c\n'],
    ['a list of scalars', 'a:\n- x\n- "y z"\n'],
    ['a value with a colon inside', 'server: https://[::1]:6443\n'],
    ['a quoted value with a hash', "a: 'x # y'\n"],
  ])('agrees with the YAML library on %s', (_what, text) => {
    const read = parsePlainYaml(text);
    expect(read).toBeDefined();
    expect(read).toEqual(parse(text));
  });

  test.each([
    ['block scalars', 'a: |\n  text\n'],
    ['folded values', 'a: text\n  goes on\n'],
    ['flow maps', 'a: {b: c}\n'],
    ['anchors', 'a: &x b\nc: *x\n'],
    ['tags', 'a: !!str 1\n'],
    ['comments behind a value', 'a: b # why\n'],
    ['comments in place of a value', 'current-context: # none yet\n'],
    ['comments in place of an item', 'a:\n- # none yet\n'],
    ['escapes in quotes', 'a: "x\\ty"\n'],
    ['numbers', 'a: 12\n'],
    ['words that older YAML takes for booleans', 'a: yes\n'],
    ['two documents', 'a: b\n---\nc: d\n'],
    ['a key given twice', 'a: b\na: c\n'],
    ['tabs', 'a:\n\tb: c\n'],
    ['quoted keys', '"a": b\n'],
    ['an empty text', ''],
  ])('leaves %s to the YAML library', (_what, text) => {
    expect(parsePlainYaml(text)).toBeUndefined();
  });
});
