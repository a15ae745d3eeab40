// SPDX-License-Identifier: Apache-2.0

/** One thing that was seen. Its texts are partly a machine's own, and are shown as text. */
export interface Evidence {
  source: string;
  object: string;
  look?: string;
  time?: string;
  code?: string;
  text?: string;
}

export interface Cause {
  cause: string;
  title: string;
  sentence: string;
  fix: string;
  evidence: Evidence[];
}

export interface Report {
  kind: string;
  name: string;
  verdict: string;
  at: string;
  steps?: { step: string; state: string; time?: string }[];
  causes?: Cause[];
  other?: Evidence[];
  unseen?: { what: string; why: string }[];
}

export interface Explanation {
  metadata: { name: string };
  report: Report;
}

export type Resource = 'nodeexplanations' | 'csrexplanations' | 'clusterexplanations';

const api = '/apis/explain.muster.dev/v1alpha1/';

/** The path of all explanations of a resource, or of one of them. */
export function pathOf(resource: Resource, name?: string): string {
  return api + resource + (name === undefined ? '' : '/' + encodeURIComponent(name));
}

/** What is said of an explanation that could not be read, by the status of the answer. */
export function whyNot(error: unknown): string {
  const status = (error as { status?: number } | null)?.status;
  const message = error instanceof Error ? error.message : String(error);
  switch (status) {
    case 403:
      return 'You may not read explanations: the ClusterRole muster:explain-reader lets you.';
    case 404:
      return 'There is no explanation: the object is gone, or the cluster has no add-on muster-explain.';
    case 503:
      return 'Nothing can be explained now: ' + message;
  }
  return 'The explanation could not be read: ' + message;
}

/** The reports in which something is wrong come first, then those that are on their way. */
export function byTrouble(all: Explanation[]): Explanation[] {
  const order = ['Cause', 'NotKnown', 'OnItsWay', 'Healthy'];
  return [...all].sort(
    (a, b) =>
      order.indexOf(a.report.verdict) - order.indexOf(b.report.verdict) ||
      a.metadata.name.localeCompare(b.metadata.name)
  );
}

/** What a verdict means. */
export function sentenceOf(report: Report): string {
  switch (report.verdict) {
    case 'Healthy':
      return 'It is as it should be.';
    case 'OnItsWay':
      return 'It is on its way, and nothing is wrong.';
    case 'Cause':
      return (report.causes ?? []).map(cause => cause.cause).join(', ');
    case 'NotKnown':
      return 'Something is wrong, and the cause is not known.';
  }
  return report.verdict;
}
