// Queries, pages and refusals of the v3 API, and what is named instead of a request that is not answered.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { cfCommands, kfCommands } from '../../../src/lib/cf/cf-commands.ts';
import { KfError } from '../../../src/lib/errors.ts';
import { v3Routes } from '../../../src/lib/ops/v3/answer.ts';
import { refusalOf, V3Error } from '../../../src/lib/v3/errors.ts';
import { allInstead, insteadOf } from '../../../src/lib/v3/instead.ts';
import { pageOf } from '../../../src/lib/v3/pages.ts';
import { V3Query } from '../../../src/lib/v3/query.ts';
import { linksTo } from '../../../src/lib/v3/resource.ts';
import { selectorOf } from '../../../src/lib/v3/selector.ts';

const link = linksTo('https://k8s');
const query = (text = ''): V3Query => new V3Query('/v3/apps', new URLSearchParams(text));
const apps = Array.from({ length: 5 }, (_, at) => ({
  guid: `g${at}`,
  name: `n${4 - at}`,
  created_at: `2026-11-0${at + 1}`,
  updated_at: '',
}));
const guids = (text: string): unknown[] => pageOf(apps, query(text), link).resources.map(({ guid }) => guid);

describe('a page', () => {
  it('has 50 resources, the oldest first, and links to itself', () => {
    const href = 'https://k8s/v3/apps?page=1&per_page=50';
    expect(pageOf(apps, query(), link).pagination).toEqual({
      ...{ total_results: 5, total_pages: 1, first: { href }, last: { href }, next: null, previous: null },
    });
    expect(guids('')).toEqual(['g0', 'g1', 'g2', 'g3', 'g4']);
  });

  it('links to the pages before and after it, with the filters of the request', () => {
    const page = pageOf(apps, query('names=a%20b&per_page=2&page=2'), link);
    expect(page.resources.map(({ guid }) => guid)).toEqual(['g2', 'g3']);
    expect(page.pagination).toMatchObject({
      total_pages: 3,
      next: { href: 'https://k8s/v3/apps?names=a+b&per_page=2&page=3' },
      previous: { href: 'https://k8s/v3/apps?names=a+b&per_page=2&page=1' },
    });
  });

  it('beyond the last one is empty', () => {
    expect(pageOf(apps, query('per_page=2&page=9'), link)).toMatchObject({
      resources: [],
      pagination: { next: null, previous: { href: 'https://k8s/v3/apps?per_page=2&page=3' } },
    });
    expect(pageOf([], query(), link).pagination).toMatchObject({ total_results: 0, total_pages: 1 });
  });

  it('is in the wanted order', () => {
    expect(guids('order_by=-created_at&per_page=2')).toEqual(['g4', 'g3']);
    expect(guids('order_by=name&per_page=2')).toEqual(['g4', 'g3']);
  });

  it.each([
    ['page=0', 'Page must be a positive integer'],
    ['per_page=5001', 'Per page must be between 1 and 5000'],
    ['per_page=many', 'Per page must be between 1 and 5000'],
    ['order_by=size', "Order by can only be: 'created_at', 'updated_at', 'name'"],
  ])('is refused for %s', (text, message) => {
    expect(() => pageOf(apps, query(text), link)).toThrow(message);
  });
});

describe('a query', () => {
  it('with a parameter that the request does not know is refused with the valid ones', () => {
    expect(() => query('names=a&nmaes=b').allow(['names'])).toThrow(
      "Unknown query parameter(s): 'nmaes'. Valid parameters are: 'page', 'per_page', 'order_by', 'names'",
    );
  });

  it('matches one of the words of a filter, everything without the filter, and only nothing with an empty one', () => {
    expect(query('names=a,%20b').matches('names', 'b')).toBe(true);
    expect(query('names=a,b').matches('names', 'c')).toBe(false);
    expect(query('').matches('names', 'c')).toBe(true);
    expect(query('names=').matches('names', 'c')).toBe(false);
    expect(query('hosts=').matches('hosts', '')).toBe(true);
  });

  it('includes what the request knows, and nothing else', () => {
    expect(query('include=space,space.organization').includes(['space', 'space.organization'])).toEqual(['space', 'space.organization']);
    expect(() => query('include=domain').includes(['space'])).toThrow("Invalid included resource: 'domain'");
  });

  it.each([
    ['env=prod', true],
    ['env==prod', true],
    ['env!=prod', false],
    ['env in (dev, prod)', true],
    ['env notin (dev,prod)', false],
    ['env,tier!=web', true],
    ['!env', false],
    ['!other,env in (prod)', true],
  ])('with label_selector=%s selects by labels', (selector, selected) => {
    expect(selectorOf(selector)({ env: 'prod', tier: 'db' })).toBe(selected);
  });

  it('with a label_selector that cannot be read is refused', () => {
    expect(() => selectorOf('env in dev')).toThrow("Invalid label_selector value 'env in dev'");
  });
});

describe('a refusal', () => {
  it('has the form of the API', () => {
    expect(new V3Error('not-found', 'App not found').body).toEqual({
      errors: [{ code: 10010, title: 'CF-ResourceNotFound', detail: 'App not found' }],
    });
  });

  it.each([
    ['forbidden', 403],
    ['not-found', 404],
    ['conflict', 422],
    ['usage', 422],
    ['quota', 422],
  ] as const)('of a failure %s has status %i', (code, status) => {
    expect(refusalOf(new KfError(code, 'No.', { hints: ['An administrator must grant it.', 'kf apps'] }))).toMatchObject({
      ...{ status, message: 'No. An administrator must grant it.' },
    });
  });

  it.each(['unreachable', 'interrupted', 'timeout', 'accepted', 'bug'] as const)('is no answer for %s', (code) => {
    expect(refusalOf(new KfError(code, 'No.'))).toBeUndefined();
  });

  it('is no answer for an error inside the API server', () => {
    expect(refusalOf(new KfError('failed', 'No.', { details: { status: 500 } }))).toBeUndefined();
  });
});

describe('what is named instead', () => {
  const there = new Set([...Object.values(cfCommands).flat(), ...kfCommands].filter(([, , label]) => label === '').map(([name]) => name));

  it.each(allInstead)('is a command that kf has, or somebody else: %s', (text) => {
    const commands = [...text.matchAll(/\bkf ([a-z-]+)/g)].map(([, name = '']) => name);
    expect(commands.filter((name) => !there.has(name))).toEqual([]);
    expect(commands.length > 0 || text.startsWith('kubectl')).toBe(true);
  });

  it.each([
    ['POST', '/v3/apps', 'kf create-app APP_NAME'],
    ['POST', '/v3/routes', 'kf create-route DOMAIN --hostname HOST'],
    ['POST', '/v3/apps/x/tasks', 'kf run-task APP_NAME --command COMMAND'],
    ['PATCH', '/v3/routes/x/relationships/space', 'kf move-route DOMAIN --hostname HOST -s SPACE'],
    ['GET', '/v2/info', 'kf curl /v3: the API has no version 2 any more'],
    ['GET', '/v3/service_plans', 'kf create-user-provided-service SERVICE_INSTANCE'],
  ])('of %s %s is %s', (method, path, instead) => {
    expect(insteadOf(method, path)).toBe(instead);
  });

  it('is nothing for a request that nobody knows', () => {
    expect(insteadOf('GET', '/v3/unicorns')).toBeUndefined();
  });
});

it('docs/curl.md lists every request that is answered, and no other', () => {
  const text = readFileSync(new URL('../../../docs/curl.md', import.meta.url), 'utf8');
  const listed = [...text.matchAll(/^\| (GET|POST|PATCH|DELETE) \| `([^`]+)` \|/gm)].map(
    ([, method = '', path = '']) => `${method} ${path}`,
  );
  expect(listed.toSorted()).toEqual(v3Routes.map(({ method, path }) => `${method} ${path}`).toSorted());
});
