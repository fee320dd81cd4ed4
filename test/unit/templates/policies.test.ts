// What holds for all admission policies of kf.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { group } from '../../../src/lib/api/group.ts';

interface Policy {
  kind: string;
  metadata: { name: string };
  spec: { paramKind?: { apiVersion: string } };
}

const folder = join(import.meta.dirname, '../../../manifests/policies');
const documents = readdirSync(folder).flatMap((file) => parseAllDocuments(readFileSync(join(folder, file), 'utf8')));
const policies = documents.map((document) => document.toJS() as Policy).filter(({ kind }) => kind.endsWith('AdmissionPolicy'));

test('no policy has a parameter of a kind of Kubernetes itself, which the API server reads only until its last binding goes (decision 80)', () => {
  const kindsOfParameters = policies.flatMap(({ metadata, spec }) => (spec.paramKind ? [[metadata.name, spec.paramKind.apiVersion]] : []));
  expect(kindsOfParameters.length).toBeGreaterThan(2);
  expect(kindsOfParameters.filter(([, apiVersion]) => apiVersion !== `${group}/v1alpha1`)).toEqual([]);
});
