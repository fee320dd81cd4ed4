import { describe, expect, it } from 'vitest';
import { readCredentials } from '../../../src/lib/api/credentials.ts';
import { annotations } from '../../../src/lib/api/group.ts';
import type { Stored } from '../../../src/lib/api/object.ts';
import type { Secret } from '../../../src/lib/api/core.ts';
import { buildUserProvidedInstance } from '../../../src/templates/service.ts';
import { asStored } from '../../support/stored.ts';

const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64');
const author = { changedBy: 'alice', now: new Date() };
const instance = (isFollowed: boolean) =>
  asStored(buildUserProvidedInstance({ guid: 'i', namespace: 's', displayName: 'db', secretName: 'c', isFollowed }, author));
const secret = (data: Record<string, string>, type = 'Opaque'): Stored<Secret> =>
  asStored({ metadata: { name: 'c', namespace: 's' }, type, data });

describe('credentials of a Secret that kf wrote', () => {
  it('are its JSON object, with a file for each value', () => {
    const json = { uri: 'x://y', port: 5, deep: { a: [1] } };
    expect(readCredentials(instance(false), secret({ credentials: base64(JSON.stringify(json)) }))).toEqual({
      values: json,
      files: { uri: base64('x://y'), port: base64('5'), deep: base64('{"a":[1]}') },
    });
  });

  it.each(['[1]', '"text"', 'null', '{broken', ''])('%j are none', (text) => {
    const problem = "The Secret 'c' holds no JSON object under the key 'credentials'";
    expect(readCredentials(instance(false), secret({ credentials: base64(text) }))).toBe(problem);
  });
});

describe('credentials of a Secret that the instance follows', () => {
  it('are its keys: text as it is, other bytes as base64 in VCAP_SERVICES and as they are in files', () => {
    const data = { user: base64('größe\n'), keystore: base64(Buffer.from([0xfe, 0xed])), credentials: base64('no JSON') };
    expect(readCredentials(instance(true), secret(data))).toEqual({
      values: { user: 'größe\n', keystore: '/u0=', credentials: 'no JSON' },
      files: data,
    });
  });

  it.each([
    ['servicebinding.io/mysql', {}, 'mysql'],
    ['servicebinding.io/mysql', { type: base64('mariadb') }, 'mariadb'],
    ['Opaque', {}, undefined],
  ])('of the type %s with %j have the type %s', (type, data, expected) => {
    expect(readCredentials(instance(true), secret({ a: base64('b'), ...data }, type))).toMatchObject({
      values: expected === undefined ? { a: 'b' } : { a: 'b', type: expected },
    });
  });

  it('are none if it is empty', () => {
    expect(readCredentials(instance(true), secret({}))).toBe("The Secret 'c' is empty");
  });

  it('are marked by an annotation of the instance', () => {
    expect(instance(true).metadata.annotations?.[annotations.fromSecret]).toBe('true');
    expect(instance(false).metadata.annotations).not.toHaveProperty(annotations.fromSecret);
  });
});
