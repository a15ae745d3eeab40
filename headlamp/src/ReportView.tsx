// SPDX-License-Identifier: Apache-2.0

import { NameValueTable, SimpleTable } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import Box from '@mui/material/Box';
import Typography from '@mui/material/Typography';
import { Evidence, Report, sentenceOf } from './explanation';

function EvidenceTable({ evidence }: { evidence: Evidence[] }) {
  return (
    <SimpleTable
      columns={[
        { label: 'Seen in', getter: (one: Evidence) => one.source },
        { label: 'Of', getter: (one: Evidence) => one.object },
        { label: 'What it says', getter: (one: Evidence) => one.text || one.code || '' },
        { label: 'When', getter: (one: Evidence) => one.time ?? '' },
        { label: 'By', getter: (one: Evidence) => one.look ?? '' },
      ]}
      data={evidence}
    />
  );
}

/** A report: what is wrong, by which evidence, what mends it, and how far a node is. */
export function ReportView({ report }: { report: Report }) {
  const steps = (report.steps ?? []).filter(step => step.state !== 'not needed');
  return (
    <Box>
      <NameValueTable
        rows={[
          { name: 'Verdict', value: sentenceOf(report) },
          { name: 'As of', value: report.at },
        ]}
      />
      {(report.causes ?? []).map(cause => (
        <Box key={cause.cause} sx={{ mt: 2 }}>
          <Typography variant="h6" component="h3">
            {cause.cause}: {cause.title}
          </Typography>
          <Typography>{cause.sentence}</Typography>
          <Typography sx={{ fontFamily: 'monospace', whiteSpace: 'pre-wrap', my: 1 }}>
            {cause.fix}
          </Typography>
          <EvidenceTable evidence={cause.evidence} />
        </Box>
      ))}
      {!!report.other?.length && (
        <Box sx={{ mt: 2 }}>
          <Typography variant="h6" component="h3">
            Evidence without a cause
          </Typography>
          <EvidenceTable evidence={report.other} />
        </Box>
      )}
      {steps.length > 0 && (
        <Box sx={{ mt: 2 }}>
          <Typography variant="h6" component="h3">
            Steps
          </Typography>
          <SimpleTable
            columns={[
              { label: 'Step', getter: (step: { step: string }) => step.step },
              { label: 'State', getter: (step: { state: string }) => step.state },
              { label: 'When', getter: (step: { time?: string }) => step.time ?? '' },
            ]}
            data={steps}
          />
        </Box>
      )}
      {(report.unseen ?? []).map(unseen => (
        <Typography key={unseen.what} sx={{ mt: 1 }}>
          Not seen: {unseen.what}: {unseen.why}
        </Typography>
      ))}
    </Box>
  );
}
