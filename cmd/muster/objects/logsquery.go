// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/keptlogs"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/evaluation"
	"muster.dev/muster/internal/plane/logquery"
	columns "muster.dev/muster/internal/platform/table"
	"muster.dev/muster/internal/platform/termsafe"
)

// logsQueryCommand holds the flags of "muster logs query".
type logsQueryCommand struct {
	*terminal.Options
	now func() time.Time

	since      time.Duration
	start, end string
	limit      int
	output     string
}

func (l *logsQueryCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "query QUERY",
		Short: "Search the logs of a control plane by a query of CloudWatch Logs Insights",
		Long: `Search the logs of a cluster's control plane that the account keeps, by a query in the language of CloudWatch Logs Insights.

Logs are kept of the log types that are switched on (aws eks update-cluster-config --logging), in the log store that make logs builds.
Values of JSON are fields: responseObject.status.conditions.0.message. Without sort, the newest rows come first.`,
		Example: `  # What became of a certificate signing request
  muster logs query --since 24h 'filter @logStream like /^kube-apiserver-audit/
   | fields @timestamp, @message
   | sort @timestamp asc
   | filter @message like "csr-kdkll"
   | limit 10000'

  # Who approved certificate signing requests, and why
  muster logs query 'filter objectRef.subresource = "approval"
   | display @timestamp, user.username, objectRef.name, responseObject.status.conditions.0.message'

  # Requests by user, in a range of time
  muster logs query --start 2026-11-20T12:00:00Z --end 2026-11-20T13:00:00Z -o json 'stats count(*) as n by user.username | sort n desc'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return l.run(cmd.Context(), args[0], cmd.Flags().Changed("limit"))
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&l.since, "since", time.Hour, "only events from this long ago on, as 10m or 24h")
	flags.StringVar(&l.start, "start", "", "only events from this moment on, as 2026-11-20T12:00:00Z")
	flags.StringVar(&l.end, "end", "", "with --start: only events up to this moment (default: now)")
	flags.IntVar(&l.limit, "limit", logsinsights.MaxRows, "only this many rows")
	cmd.MarkFlagsMutuallyExclusive("since", "start")
	terminal.AddOutputFlag(cmd, &l.output)
	for _, name := range []string{"since", "start", "end", "limit"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions) // the flag exists
	}
	return cmd
}

func (l *logsQueryCommand) run(ctx context.Context, text string, limited bool) error {
	query, err := logsinsights.Parse(text)
	if err != nil {
		return terminal.UsageError{Err: pointed(text, err)}
	}
	question := logquery.Question{Query: query, Now: l.now()}
	wanted := logquery.Range{Since: l.since, Start: l.start, End: l.end}
	if question.Start, question.End, err = wanted.Times(question.Now, "--"); err != nil {
		return terminal.UsageError{Err: err}
	}
	if limited {
		if l.limit < 1 || l.limit > logsinsights.MaxRows {
			return terminal.UsageError{Err: fmt.Errorf("invalid --limit %d: must be from 1 to %d", l.limit, logsinsights.MaxRows)}
		}
		question.Limit = l.limit
	}
	dir, err := l.OpenExisting()
	if err != nil {
		return err
	}
	own, err := l.OpenCluster()
	if err != nil {
		return err
	}
	answer, err := keptlogs.Ask(ctx, dir, own, question)
	if err != nil {
		return err
	}
	result := answer.Result
	if len(result.Rows) == 0 && l.output == terminal.FormatTable {
		_, err := fmt.Fprintf(l.Err, "No rows. Of cluster %s these log types are on: %s.\n", answer.Cluster, typesText(answer.Types))
		return err
	}
	return l.print(result)
}

// pointed is an error of a query with the line of the query that it is about, and a caret below the character.
func pointed(text string, err error) error {
	syntax, ok := logsinsights.AsSyntaxError(err)
	if !ok {
		return err
	}
	return fmt.Errorf("%s\n  %s", termsafe.Line(syntax.Error()), strings.ReplaceAll(syntax.Pointed(text), "\n", "\n  "))
}

func typesText(types []v1alpha1.LoggingType) string {
	texts := make([]string, len(types))
	for i, t := range types {
		texts[i] = string(t)
	}
	return cmp.Or(strings.Join(texts, ", "), "none")
}

// print shows the rows of an answer: a table of its columns, or a list of objects that lack the fields that a row lacks.
func (l *logsQueryCommand) print(result *evaluation.Result) error {
	rows := make([]map[string]string, len(result.Rows))
	for i, fields := range result.Rows {
		rows[i] = map[string]string{}
		for _, field := range fields {
			rows[i][field.Name] = field.Value
		}
	}
	if l.output != terminal.FormatTable {
		return terminal.PrintData(l.Out, l.output, rows)
	}
	t := columns.New(l.Out)
	t.Row(result.Columns...)
	for _, row := range rows {
		cells := make([]string, len(result.Columns))
		for i, name := range result.Columns {
			cells[i] = row[name]
		}
		t.Row(cells...)
	}
	return t.Flush()
}
