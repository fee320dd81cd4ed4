// The query of a v3 request: filters, pages, order, included resources. A parameter without an effect is refused, as the API does.

import type { KubeObject } from '../api/object.ts';
import { V3Error } from './errors.ts';
import { metadataOf } from './resource.ts';
import { selectorOf } from './selector.ts';

const pageParameters = ['page', 'per_page', 'order_by'] as const;
const mostPerPage = 5000;
const orders = ['created_at', 'updated_at', 'name'] as const;

export interface Paging {
  page: number;
  perPage: number;
  orderBy: (typeof orders)[number];
  descending: boolean;
}

/** Words of a parameter, which are separated by commas. */
const wordsOf = (text: string): string[] => text.split(',').map((word) => word.trim());

export class V3Query {
  readonly path: string;
  readonly #given: URLSearchParams;

  constructor(path: string, given: URLSearchParams) {
    this.path = path;
    this.#given = given;
  }

  /** @throws V3Error for a parameter that is not among these or those of lists */
  allow(filters: readonly string[], { isList = true }: { isList?: boolean } = {}): this {
    const known = [...(isList ? pageParameters : []), ...filters];
    const unknown = [...new Set(this.#given.keys())].filter((name) => !known.includes(name));
    if (unknown.length === 0) return this;
    const valid = known.length === 0 ? 'This request has none.' : `Valid parameters are: ${known.map((name) => `'${name}'`).join(', ')}`;
    const which = unknown.map((name) => `'${name}'`).join(', ');
    throw new V3Error('bad-query', `The query parameter is invalid: Unknown query parameter(s): ${which}. ${valid}`);
  }

  has(name: string): boolean {
    return this.#given.has(name);
  }

  /** The words of a filter; undefined when it is not given. An empty filter has one empty word: `hosts=` are the routes without a host. */
  words(name: string): string[] | undefined {
    const given = this.#given.get(name);
    return given === null ? undefined : wordsOf(given);
  }

  /** True when the filter is not given, or names one of the values. */
  matches(name: string, ...values: readonly (string | undefined)[]): boolean {
    const words = this.words(name);
    return words === undefined || values.some((value) => value !== undefined && words.includes(value));
  }

  /** True when `label_selector` is not given, or the object's labels fulfil it. */
  matchesLabels(object: KubeObject): boolean {
    const selector = this.#given.get('label_selector');
    return selector === null || selectorOf(selector)(metadataOf(object).labels);
  }

  /** The words of `include`. @throws V3Error for another word than these */
  includes(possible: readonly string[]): string[] {
    const given = (this.words('include') ?? []).filter((word) => word !== '');
    const wrong = given.find((word) => !possible.includes(word));
    if (wrong === undefined) return given;
    const valid = possible.map((word) => `'${word}'`).join(', ');
    throw new V3Error(
      'bad-query',
      `The query parameter is invalid: Invalid included resource: '${wrong}'. Valid included resources are: ${valid}`,
    );
  }

  paging(): Paging {
    const order = this.#given.get('order_by') ?? 'created_at';
    const orderBy = orders.find((name) => name === order.replace(/^[-+]/, ''));
    if (orderBy === undefined)
      throw new V3Error(
        'bad-query',
        `The query parameter is invalid: Order by can only be: ${orders.map((name) => `'${name}'`).join(', ')}`,
      );
    return {
      page: this.#number('page', 1, Number.MAX_SAFE_INTEGER),
      perPage: this.#number('per_page', 50, mostPerPage),
      orderBy,
      descending: order.startsWith('-'),
    };
  }

  /** Path and query of another page of the same request. */
  page(page: number, perPage: number): string {
    const query = new URLSearchParams(this.#given);
    query.set('page', String(page));
    query.set('per_page', String(perPage));
    return `${this.path}?${query.toString()}`;
  }

  #number(name: string, standard: number, most: number): number {
    const given = this.#given.get(name);
    if (given === null) return standard;
    const value = /^\d{1,10}$/.test(given) ? Number(given) : 0;
    if (value >= 1 && value <= most) return value;
    const range = most === mostPerPage ? `between 1 and ${most}` : 'a positive integer';
    const label = name === 'page' ? 'Page' : 'Per page';
    throw new V3Error('bad-query', `The query parameter is invalid: ${label} must be ${range}`);
  }
}
