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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/platform/statedir"
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
	elsewhere func(*terminal.Options) (*kinds.Client, error) // connects to the cluster of --kubeconfig; nil without the flag
	now       func() time.Time
	catalogue func() (cause.Catalogue, error)

	// identity asks the service of an installation which IAM identity a pod has; nil if nobody is to be asked.
	identity func(ctx context.Context, dir statedir.Dir, cluster, namespace, pod string) (podidentity.Explanation, error)

	// status is what muster status says of an installation.
	status func(context.Context, statedir.Dir) (any, error)

	output, bundle string
}

// NewCommand returns "muster explain".
func NewCommand(o *terminal.Options) *cobra.Command {
	e := &explainCommand{Options: o, planes: kinds.NewDialers(), now: time.Now, catalogue: cause.Default, status: askStatus, identity: askIdentity}
	var way kinds.Access
	cmd := e.command()
	way.AddFlags(cmd.Flags())
	cmd.PreRun = func(*cobra.Command, []string) {
		if way.Named() {
			e.elsewhere = way.Connect
		}
	}
	return cmd
}

const long = `Show why a machine does not become a node, and why a node, node group, cluster, update or certificate signing request is not as
it should be: the cause by its identifier, the evidence with its source and time, the fix, and what could not be looked at. Without
a name, show all that is wrong now. All causes are in docs/causes.md.

The command reads: objects of the management plane and of the cluster, and the last minute of logs on this host. It names a cause
only by evidence that its catalogue knows; of all else it says that the cause is not known, and shows the evidence.

With --bundle, an archive to send is written in place of the explanation, for its owner alone, and never over a file that is there. It
has the diagnosis, the objects and the ends of logs that it rests on, versions, and a list of what was left out; no Secrets, keys or
tokens. Read it before you send it: a secret that a script printed looks like any other text. Who made it is in muster logs reads.

KIND is node, machine, nodegroup, cluster, csr, update, pod, volume, service, host or stack. A machine is named by its instance id, its
node's name or its private address; a host that joined by its Node; a pod, a volume (by its claim) and a service as NAMESPACE/NAME; a
stack of CloudFormation by its name or ARN. Pods, volumes and services are read by their names alone.

With --kubeconfig or --context the cluster is any cluster, which need not be Muster's, and KIND is node, csr, pod, volume, service or host.
Without a name, its Leases, bindings, webhooks, APIServices and aws-auth are looked at, too. On a node itself: muster node explain.

Exit codes: 0 nothing is wrong, 1 a cause was found, 2 the command line or a name is wrong, 3 something is wrong and the cause is
not known, 4 the management plane, or the cluster that may have the name, could not be asked. With --bundle: 0 the archive is written,
even while the management plane does not answer.`

const examples = `  # What is wrong now
  muster explain

  # Why a machine is not a node
  muster explain machine i-0123456789abcdef0

  # For a program: the causes of a node group
  muster explain nodegroup default -o json | jq -r '.causes[].cause'

  # Why a certificate was refused
  muster explain csr csr-8x2vq

  # What failed of a stack, what waits, and what is left of it
  muster explain stack eksctl-blue-cluster

  # Why a pod does not run, and what is wrong with a cluster elsewhere
  muster explain pod shop/web-0
  muster explain --context production

  # An archive to send to somebody who is to look at it
  muster explain --bundle muster.tar.gz`

func (e *explainCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "explain [KIND] [NAME]",
		Short:   "Show why a machine is not a node, or what else is wrong, with the evidence and the fix",
		Long:    long,
		Example: examples,
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
			if err := e.checkElsewhere(args); err != nil {
				return terminal.UsageError{Err: err}
			}
			if cmd.Flags().Changed("bundle") {
				return e.makeBundle(cmd.Context(), args)
			}
			return e.run(cmd.Context(), args)
		},
	}
	cmd.Flags().StringVar(&e.bundle, "bundle", "", "write an archive to send (tar.gz) in place of printing: diagnosis, evidence, objects, ends of logs, versions; no secrets")
	_ = cmd.MarkFlagFilename("bundle", "tar.gz", "tgz") // the flag exists
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
		return e.unasked(err)
	}
	reports, _, err := q.explain(ctx, catalogue, args)
	if err != nil {
		return e.unasked(err)
	}
	switch {
	case len(args) == 0:
		err = e.print(q, reports)
	case e.output != terminal.FormatTable:
		err = terminal.PrintData(e.Out, e.output, reports[0])
	default:
		err = Tell(e.Out, reports[0])
	}
	if err != nil {
		return err
	}
	return Exit(reports...)
}

// unasked says why nothing can be explained, and returns the exit code. An error of the command line is returned as it is.
func (e *explainCommand) unasked(err error) error {
	if _, usage := errors.AsType[terminal.UsageError](err); usage {
		return err
	}
	_, _ = fmt.Fprintf(e.Err, "Error: nothing can be explained: %s\n", termsafe.Line(err.Error()))
	return terminal.ExitStatus(exitUnasked)
}

// explain returns the report about the object that the arguments name, or those of all that is wrong, with their facts.
func (q *question) explain(ctx context.Context, catalogue cause.Catalogue, args []string) ([]diagnosis.Report, []diagnosis.Facts, error) {
	if len(args) == 0 && q.foreign {
		reports, facts := q.everythingForeign(catalogue)
		return reports, facts, nil
	} else if len(args) == 0 {
		reports, facts := q.everything(ctx, catalogue)
		return reports, facts, nil
	}
	facts, err := q.facts(ctx, kindOf(args[0]), args[1])
	if _, unasked := errors.AsType[unaskedError](err); unasked {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, terminal.UsageError{Err: err}
	}
	return []diagnosis.Report{q.decide(catalogue, facts)}, []diagnosis.Facts{facts}, nil
}

// Exit returns the exit code of reports as an error: 1 for a cause, 3 for what is not known; nil for 0.
func Exit(reports ...diagnosis.Report) error {
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
	if e.elsewhere != nil {
		return e.askElsewhere(ctx)
	}
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
	q := &question{snapshot: snapshot, cluster: e.Cluster, logs: evidence.HostLogs{Dir: dir, Now: now}, apis: map[string]client.Reader{}}
	if e.identity != nil {
		q.identity = func(ctx context.Context, cluster, namespace, pod string) (podidentity.Explanation, error) {
			return e.identity(ctx, dir, v1alpha1.ClusterSlug(cluster), namespace, pod)
		}
	}
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
		q.apis[name] = api
	}
	snapshot.ReadClusters(ctx, q.apis)
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
