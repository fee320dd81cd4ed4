// Checks the user's rights before work begins, and names missing rights and who can grant them.

import { computedResource } from '../api/object.ts';
import type { KubeObject } from '../api/object.ts';
import type { AccessQuestion, Cluster } from './cluster.ts';
import { describeRight, KubeError, rightHints } from './errors.ts';
import { defined } from '../defined.ts';

interface Rule {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
}

/** authorization.k8s.io/v1: all rules for the caller in one namespace. */
interface RulesReview extends KubeObject {
  spec: { namespace: string };
  status?: { resourceRules?: Rule[]; incomplete?: boolean };
}

const rulesReviewType = computedResource<RulesReview>(
  'authorization.k8s.io',
  'v1',
  'SelfSubjectRulesReview',
  'selfsubjectrulesreviews',
  false,
);

export interface AccessAnswer {
  question: AccessQuestion;
  allowed: boolean;
  /** The API server's reason, often empty. */
  reason: string;
}

function holds(list: string[] | undefined, value: string): boolean {
  return list?.some((entry) => entry === '*' || entry === value) === true;
}

function grants(rule: Rule, { verb, group = '', resource: plural, subresource, name }: AccessQuestion): boolean {
  const full = subresource === undefined ? plural : `${plural}/${subresource}`;
  const named =
    rule.resourceNames === undefined || rule.resourceNames.length === 0 || (name !== undefined && rule.resourceNames.includes(name));
  const anySubresource = subresource !== undefined && holds(rule.resources, `*/${subresource}`);
  return named && holds(rule.verbs, verb) && holds(rule.apiGroups, group) && (holds(rule.resources, full) || anySubresource);
}

/** One request for all questions about a namespace. Undefined when the review is not possible; then each question is asked separately. */
async function rulesIn(cluster: Cluster, ns: string, signal: AbortSignal | undefined): Promise<Rule[]> {
  const review: RulesReview = { metadata: {}, spec: { namespace: ns } };
  const answer = await cluster.create(rulesReviewType, review, defined({ signal })).catch((error: unknown) => {
    if (error instanceof KubeError && error.status !== 0) return undefined;
    throw error;
  });
  return answer?.status?.resourceRules ?? [];
}

/**
 * Answers all questions with as few requests as possible: one rules review per namespace, and one access review for each question that these rules
 * do not answer with yes (they do not include rules of webhooks and node authorizers).
 */
export async function askAccess(cluster: Cluster, questions: readonly AccessQuestion[], signal?: AbortSignal): Promise<AccessAnswer[]> {
  const namespaces = [...new Set(questions.map(({ ns }) => ns))].filter((ns) => ns !== undefined);
  const worthIt = namespaces.filter((ns) => questions.filter((question) => question.ns === ns).length > 1);
  const rules = new Map(await Promise.all(worthIt.map(async (ns) => [ns, await rulesIn(cluster, ns, signal)] as const)));
  return Promise.all(
    questions.map(async (question) => {
      const known = question.ns === undefined ? [] : (rules.get(question.ns) ?? []);
      if (known.some((rule) => grants(rule, question))) return { question, allowed: true, reason: '' };
      return { question, ...(await cluster.canI(question, signal)) };
    }),
  );
}

/** Throws KubeError `forbidden` that names every missing right, the user, and who can grant the rights. */
export async function assertAccess(cluster: Cluster, questions: readonly AccessQuestion[], signal?: AbortSignal): Promise<void> {
  const missing = (await askAccess(cluster, questions, signal)).filter(({ allowed }) => !allowed).map(({ question }) => rightOf(question));
  const [first] = missing;
  if (first === undefined) return;
  const user = await cluster.whoAmI(signal).catch(() => cluster.identity.user);
  const list = missing.map((right) => describeRight(right)).join(', ');
  throw new KubeError(
    'forbidden',
    `The user "${user}" ${list}.`,
    { status: 403, reason: 'Forbidden', missingRight: { user, ...first } },
    { hints: rightHints(first, cluster.identity), details: { missingRights: missing.map((right) => ({ user, ...right })) } },
  );
}

function rightOf({ verb, resource: plural, subresource, group = '', ns }: AccessQuestion): {
  verb: string;
  resource: string;
  group: string;
  ns?: string;
} {
  return { verb, resource: subresource === undefined ? plural : `${plural}/${subresource}`, group, ...defined({ ns }) };
}
