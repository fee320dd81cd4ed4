// Bills of materials of the lifecycle's two programs: the exporter puts them into every app image and warns if they are missing.

/** File name → content, in the three formats that the lifecycle looks for. */
export function lifecycleSboms(version: string): Record<string, string> {
  const files: Record<string, string> = {};
  for (const program of ['lifecycle', 'launcher']) {
    const purl = `pkg:golang/github.com/buildpacks/lifecycle@v${version}#cmd/${program}`;
    files[`${program}.sbom.cdx.json`] = JSON.stringify(cycloneDx(program, version, purl));
    files[`${program}.sbom.spdx.json`] = JSON.stringify(spdx(program, version, purl));
    files[`${program}.sbom.syft.json`] = JSON.stringify(syft(program, version, purl));
  }
  return files;
}

function cycloneDx(name: string, version: string, purl: string): unknown {
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.4',
    version: 1,
    metadata: { component: { type: 'application', name, version, purl } },
    components: [],
  };
}

function spdx(name: string, version: string, purl: string): unknown {
  const reference = { referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl };
  return {
    spdxVersion: 'SPDX-2.2',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name,
    documentNamespace: `https://kf.cloudfoundry.org/spdx/${name}-${version}`,
    creationInfo: { created: '1970-01-01T00:00:00Z', creators: ['Organization: kf'] },
    packages: [
      {
        SPDXID: `SPDXRef-${name}`,
        name,
        versionInfo: version,
        downloadLocation: 'NOASSERTION',
        filesAnalyzed: false,
        licenseConcluded: 'Apache-2.0',
        licenseDeclared: 'Apache-2.0',
        copyrightText: 'NOASSERTION',
        externalRefs: [reference],
      },
    ],
  };
}

function syft(name: string, version: string, purl: string): unknown {
  return {
    artifacts: [
      {
        id: name,
        name,
        version,
        type: 'go-module',
        foundBy: 'kf',
        locations: [],
        licenses: ['Apache-2.0'],
        language: 'go',
        cpes: [],
        purl,
      },
    ],
    artifactRelationships: [],
    source: { type: 'file', target: `/cnb/lifecycle/${name}` },
    distro: {},
    descriptor: { name: 'kf', version: '1' },
    schema: { version: '3.0.1', url: 'https://raw.githubusercontent.com/anchore/syft/main/schema/json/schema-3.0.1.json' },
  };
}
