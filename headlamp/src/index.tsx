// SPDX-License-Identifier: Apache-2.0

import {
  DetailsViewSectionProps,
  registerDetailsViewSection,
  registerRoute,
  registerSidebarEntry,
} from '@kinvolk/headlamp-plugin/lib';
import { ClusterPage, ExplanationSection } from './Explained';
import { Resource } from './explanation';

const explained: Record<string, Resource> = {
  Node: 'nodeexplanations',
  CertificateSigningRequest: 'csrexplanations',
};

/** The section of a page of details; nothing for kinds that are not explained. */
export function Section({ resource }: DetailsViewSectionProps) {
  const kind = resource ? explained[resource.kind] : undefined;
  if (!resource || !kind) {
    return null;
  }
  return (
    <ExplanationSection resource={kind} name={resource.metadata.name} cluster={resource.cluster} />
  );
}

registerDetailsViewSection(Section);

registerSidebarEntry({
  parent: 'cluster',
  name: 'muster-explain',
  label: 'What is wrong',
  url: '/muster-explain',
});

registerRoute({
  path: '/muster-explain',
  sidebar: 'muster-explain',
  name: 'muster-explain',
  exact: true,
  component: () => <ClusterPage />,
});
