// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
	"muster.dev/muster/internal/platform/termsafe"
)

// Exit codes, besides 0 for what is as it should be or on its way.
const (
	exitCause    = 1 // a cause was found
	exitNotKnown = 3 // something is wrong, and the cause is not known
	exitUnasked  = 4 // the management plane, or the cluster that has the name, could not be asked
)

// explainCommand holds the flags of "muster explain".
type explainCommand struct {
	*terminal.Options
	planes    kinds.Dialers
	now       func() time.Time
	catalogue func() (cause.Catalogue, error)

	output string
}

// NewCommand returns "muster explain".
func NewCommand(o *terminal.Options) *cobra.Command {
	return (&explainCommand{Options: o, planes: kinds.NewDialers(), now: time.Now, catalogue: cause.Default}).command()
}

func (e *explainCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [KIND] [NAME]",
		Short: "Show why a machine is not a node, or what else is wrong, with the evidence and the fix",
		Long: `Show why a machine does not become a node, and why a node, node group, cluster, update or certificate signing request is not as
it should be: the cause by its identifier, the evidence with its source and time, the fix, and what could not be looked at. Without
a name, show all that is wrong now. All causes are in docs/causes.md.

The command reads: objects of the management plane and of the cluster, and the last minute of logs on this host. It names a cause
only by evidence that its catalogue knows; of all else it says that the cause is not known, and shows the evidence.

KIND is node, machine, nodegroup, cluster, csr or update. A machine is named by its instance id, its node's name or its private
address.

Exit codes: 0 nothing is wrong, 1 a cause was found, 2 the command line or a name is wrong, 3 something is wrong and the cause is
not known, 4 the management plane, or the cluster that may have the name, could not be asked.`,
		Example: `  # What is wrong now
  muster explain

  # Why a machine is not a node
  muster explain machine i-0123456789abcdef0

  # For a program: the causes of a node group
  muster explain nodegroup default -o json | jq -r '.causes[].cause'

  # Why a certificate was refused
  muster explain csr csr-8x2vq`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 2:
				return fmt.Errorf("%q is one argument too many: muster explain takes KIND NAME", args[2])
			case len(args) > 0 && kindOf(args[0]) == "":
				return fmt.Errorf("there is no kind %q%s; there are: %s", args[0], terminal.DidYouMean(args[0], kindNames()), strings.Join(kindNames(), ", "))
			case len(args) == 1:
				return fmt.Errorf("the name of the %s is missing; without a kind, muster explain shows all that is wrong", args[0])
			}
			return nil
		},
		ValidArgsFunction: e.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := terminal.CheckOutput(e.output, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML); err != nil {
				return err
			}
			return e.run(cmd.Context(), args)
		},
	}
	terminal.AddFormatFlag(cmd, &e.output, terminal.FormatTable, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML)
	return cmd
}

// run explains what the arguments name, and ends with the exit code of the worst verdict.
func (e *explainCommand) run(ctx context.Context, args []string) error {
	catalogue, err := e.catalogue()
	if err != nil {
		return err
	}
	q, err := e.ask(ctx)
	if err != nil {
		if _, usage := errors.AsType[terminal.UsageError](err); usage {
			return err
		}
		_, _ = fmt.Fprintf(e.Err, "Error: nothing can be explained: %v\n", err)
		return terminal.ExitStatus(exitUnasked)
	}
	if len(args) == 0 {
		reports := q.everything(ctx, catalogue)
		if err := e.print(q, reports); err != nil {
			return err
		}
		return exit(reports...)
	}
	facts, err := q.facts(ctx, kindOf(args[0]), args[1])
	if unasked, ok := errors.AsType[unaskedError](err); ok {
		_, _ = fmt.Fprintf(e.Err, "Error: nothing can be explained: %s\n", termsafe.Line(unasked.Error()))
		return terminal.ExitStatus(exitUnasked)
	}
	if err != nil {
		return terminal.UsageError{Err: err}
	}
	report := diagnosis.Decide(catalogue, facts, q.snapshot.At)
	if e.output != terminal.FormatTable {
		err = terminal.PrintData(e.Out, e.output, report)
	} else {
		err = e.tell(report)
	}
	if err != nil {
		return err
	}
	return exit(report)
}

// exit is the exit code of reports, as an error; nil for 0.
func exit(reports ...diagnosis.Report) error {
	has := func(v diagnosis.Verdict) bool {
		return slices.ContainsFunc(reports, func(r diagnosis.Report) bool { return r.Verdict == v })
	}
	switch {
	case has(diagnosis.Found):
		return terminal.ExitStatus(exitCause)
	case has(diagnosis.NotKnown):
		return terminal.ExitStatus(exitNotKnown)
	}
	return nil
}

// ask reads everything that explanations need.
func (e *explainCommand) ask(ctx context.Context) (*question, error) {
	dir, err := e.OpenExisting()
	if err != nil {
		return nil, err
	}
	management, err := e.planes.Management(e.Options)
	if err != nil {
		return nil, err
	}
	now := e.now()
	snapshot, err := evidence.Read(ctx, management, now)
	if err != nil {
		return nil, management.Explain(err)
	}
	q := &question{snapshot: snapshot, cluster: e.Cluster, logs: evidence.HostLogs{Dir: dir, Now: now}}
	for i := range snapshot.Clusters {
		name := snapshot.Clusters[i].Spec.Name
		if !q.about(name) {
			continue
		}
		of := *e.Options
		of.Cluster = name
		api, err := e.planes.Cluster(&of)
		if err != nil {
			snapshot.Missed(name, err)
			continue
		}
		snapshot.ReadCluster(ctx, name, api)
	}
	if e.Cluster != "" && len(snapshot.Of) == 0 {
		return nil, terminal.UsageError{Err: fmt.Errorf("--cluster: there is no cluster %q; muster get clusters lists those that there are", e.Cluster)}
	}
	return q, nil
}

// complete offers kinds, then names.
func (e *explainCommand) complete(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return kindNames(), cobra.ShellCompDirectiveNoFileComp
	case 1:
		kind, ok := kinds.FindKind(kindOf(args[0]))
		if !ok {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return kinds.NamesOf(cmd.Context(), e.Options, e.planes, kind, nil), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}
