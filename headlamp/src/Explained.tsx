// SPDX-License-Identifier: Apache-2.0

import { ApiProxy } from '@kinvolk/headlamp-plugin/lib';
import { SectionBox, SimpleTable } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import Typography from '@mui/material/Typography';
import { useEffect, useState } from 'react';
import { byTrouble, Explanation, pathOf, Resource, sentenceOf, whyNot } from './explanation';
import { ReportView } from './ReportView';

/**
 * Reads a path of the cluster's API server, with the rights of who looks. Without a cluster it is that of the page: a
 * cluster that is there and undefined would be none.
 */
export function useAnswer<T>(path: string, cluster?: string): { answer?: T; problem?: string } {
  const [state, setState] = useState<{ answer?: T; problem?: string }>({});
  useEffect(() => {
    let current = true;
    setState({});
    ApiProxy.request(path, cluster ? { cluster } : {}).then(
      (answer: T) => current && setState({ answer }),
      (error: unknown) => current && setState({ problem: whyNot(error) })
    );
    return () => {
      current = false;
    };
  }, [path, cluster]);
  return state;
}

/** The explanation of one object, as a section of its page. */
export function ExplanationSection(props: { resource: Resource; name: string; cluster?: string }) {
  const { answer, problem } = useAnswer<Explanation>(
    pathOf(props.resource, props.name),
    props.cluster
  );
  return (
    <SectionBox title="Why it is as it is">
      {answer ? (
        <ReportView report={answer.report} />
      ) : (
        <Typography>{problem ?? 'It is being explained.'}</Typography>
      )}
    </SectionBox>
  );
}

function ExplanationList(props: { title: string; resource: Resource }) {
  const { answer, problem } = useAnswer<{ items: Explanation[] }>(pathOf(props.resource));
  return (
    <SectionBox title={props.title}>
      {answer ? (
        <SimpleTable
          columns={[
            { label: 'Name', getter: (one: Explanation) => one.metadata.name },
            { label: 'Verdict', getter: (one: Explanation) => sentenceOf(one.report) },
            {
              label: 'Why',
              getter: (one: Explanation) => one.report.causes?.[0]?.sentence ?? '',
            },
            { label: 'Fix', getter: (one: Explanation) => one.report.causes?.[0]?.fix ?? '' },
          ]}
          data={byTrouble(answer.items)}
        />
      ) : (
        <Typography>{problem ?? 'It is being explained.'}</Typography>
      )}
    </SectionBox>
  );
}

/** The page of a cluster: the cluster itself, its nodes and those that are none yet, its requests. */
export function ClusterPage() {
  return (
    <>
      <ExplanationList title="Cluster" resource="clusterexplanations" />
      <ExplanationList title="Nodes, and machines that are none yet" resource="nodeexplanations" />
      <ExplanationList title="Certificate signing requests" resource="csrexplanations" />
    </>
  );
}
