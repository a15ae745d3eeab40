// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/nodegroupspec"
	"muster.dev/muster/internal/platform/release"
)

// NewCreateCommand returns "muster create".
func NewCreateCommand(o *terminal.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a cluster, a node group, a Fargate profile, an add-on, a pod identity association, or a file system",
		Args:  oneOf("cluster", "nodegroup", "fargateprofile", "addon", "podidentityassociation", "filesystem"),
		RunE:  terminal.NothingToDo,
	}
	cmd.AddCommand((&createClusterCommand{Options: o, planes: kinds.NewDialers(), euid: os.Geteuid(), interval: terminal.WaitInterval, host: servicestatus.ThisHost}).command())
	cmd.AddCommand((&createCommand{Options: o, planes: kinds.NewDialers(), euid: os.Geteuid(), interval: terminal.WaitInterval, host: servicestatus.ThisHost}).command())
	cmd.AddCommand((&createFargateProfileCommand{Options: o, planes: kinds.NewDialers(), api: fargateOf, interval: terminal.WaitInterval}).command())
	cmd.AddCommand((&createAddonCommand{Options: o, planes: kinds.NewDialers(), interval: terminal.WaitInterval}).command())
	cmd.AddCommand((&createPodIdentityCommand{Options: o, planes: kinds.NewDialers()}).command())
	cmd.AddCommand((&createFileSystemCommand{Options: o, planes: kinds.NewDialers(), interval: terminal.WaitInterval, random: rand.Reader}).command())
	return cmd
}

// oneOf refuses whatever is not a subcommand. Cobra would print the help and call it done.
func oneOf(subcommands ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("name a kind to %s: %s", cmd.Name(), strings.Join(subcommands, " or "))
		}
		return fmt.Errorf("cannot %s %q%s; there is: %s", cmd.Name(), args[0], terminal.DidYouMean(args[0], subcommands), strings.Join(subcommands, ", "))
	}
}

// createCommand holds the flags of "muster create nodegroup".
type createCommand struct {
	*terminal.Options
	planes   kinds.Dialers
	euid     int
	host     func() capacity.Host
	interval time.Duration

	nodes, minimum, maximum int32
	provider, cluster       string
	nodeRole, bootstrap     string
	isolation, version      string
	labels, taints          []string
	dryRun, output          string
	repair, simulatePods    bool
	wait                    bool
	timeout                 time.Duration
}

func createFormats() []string {
	return []string{terminal.FormatName, terminal.FormatJSON, terminal.FormatYAML}
}

func (c *createCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "nodegroup NAME",
		Aliases: []string{"nodegroups", "ng"},
		Short:   "Make a group of like machines that join the cluster",
		Long: `Make a group of like machines that join the cluster by themselves. The group keeps its number of machines: one that goes is replaced.

Made again with the same settings it stays as it is. To change a group: muster scale nodegroup, or kubectl apply.`,
		Example: `  # Three machines, and three that are replaced when their nodes stay unhealthy
  muster create nodegroup web --nodes 3 --wait
  muster create nodegroup shop --nodes 3 --repair

  # Machines for batch jobs only
  muster create nodegroup batch --nodes 2 --labels pool=batch --taints pool=batch:NoSchedule

  # Machines of another IAM role, and machines that join by bootstrap tokens
  muster create nodegroup team --node-role team-nodes
  muster create nodegroup plain --bootstrap token

  # Machines whose root is root on this host, where muster up --allow-host-root names the cluster
  muster create nodegroup builders --isolation none

  # Machines of an older minor than the cluster's
  muster create nodegroup legacy --version 1.35

  # A hundred nodes that run no pods, and a hundred that report pods as running
  muster create nodegroup many --provider simulated --nodes 100
  muster create nodegroup busy --provider simulated --nodes 100 --simulate-pods

  # The same as a document, for kubectl apply
  muster create nodegroup web --nodes 3 --dry-run=client -o yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.Int32VarP(&c.nodes, "nodes", "N", 1, "number of machines")
	flags.Int32Var(&c.minimum, "min", 0, "fewest machines the group may be scaled to")
	flags.Int32Var(&c.maximum, "max", 0, fmt.Sprintf("most machines the group may be scaled to (default: %d, or --nodes if that is more; %d for simulated ones)",
		v1alpha1.DefaultLocalMaxSize, v1alpha1.MaxGroupSize))
	flags.StringVar(&c.provider, "provider", string(v1alpha1.DefaultProvider), "where machines come from: local (namespaces of this host; needs root) or simulated (they run no programs)")
	flags.BoolVar(&c.simulatePods, "simulate-pods", false, "let simulated machines take pods, and report them as running")
	flags.StringVar(&c.version, "version", "", "minor version of Kubernetes of the machines: not newer than the cluster's, and at most three minors older (default: the cluster's)")
	flags.StringVar(&c.isolation, "isolation", "", "what separates local machines from the host: none, or user-namespace, in which root is nobody outside (default: user-namespace)")
	flags.StringVar(&c.bootstrap, "bootstrap", "", "how machines prove themselves when they join: role or token (default: role, but token for simulated ones)")
	flags.StringVar(&c.nodeRole, "node-role", "", "IAM role of machines that join by role, by name or ARN (default: "+v1alpha1.ClusterNodeRole("CLUSTER")+")")
	kinds.AddClusterFlag(cmd, c.Options, c.planes, &c.cluster, "cluster that the machines join (default: the only one there is)")
	flags.StringSliceVar(&c.labels, "labels", nil, "labels of the nodes, as in key=value,other=value")
	flags.StringSliceVar(&c.taints, "taints", nil, "taints of the nodes, as in key=value:NoSchedule,other:NoExecute")
	flags.BoolVar(&c.repair, "repair", false, "replace machines whose nodes stay unhealthy, as EKS's node auto repair does")
	flags.BoolVar(&c.wait, "wait", false, "return when every machine's node is Ready")
	flags.DurationVar(&c.timeout, "timeout", 5*time.Minute, "how long to --wait")
	addDryRunFlag(cmd, &c.dryRun)
	terminal.AddFormatFlag(cmd, &c.output, terminal.FormatName, createFormats()...)
	// The flags exist, so registering cannot fail.
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(v1alpha1.ProviderNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("version", cobra.FixedCompletions(release.All().Minors(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("isolation", cobra.FixedCompletions([]string{string(v1alpha1.IsolationNone), string(v1alpha1.IsolationUserNamespace)}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("bootstrap", cobra.FixedCompletions([]string{"role", "token"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("node-role", c.completeRoles)
	return cmd
}

func (c *createCommand) run(cmd *cobra.Command, name string) error {
	ctx := cmd.Context()
	bounded := cmd.Flags().Changed("max")
	group, err := c.group(name, cmd.Flags().Changed("nodes"), bounded)
	if err != nil {
		return err
	}
	p, err := c.planes.Management(c.Options)
	cluster := c.cluster
	if err == nil && (cluster == "" || c.dryRun != dryRunClient) {
		cluster, err = p.Cluster(ctx, cluster)
	}
	if cluster != "" {
		group.Namespace = v1alpha1.ClusterSlug(cluster)
	}
	if c.dryRun == dryRunClient {
		if cluster == "" {
			return fmt.Errorf("cannot choose the cluster that the machines join (name it with --cluster): %w", err)
		}
		return c.print(group, made(c.dryRun))
	}
	if err != nil {
		return err
	}
	if err := errors.Join(p.CheckRole(ctx, group), p.CheckVersion(ctx, group)); err != nil {
		return err
	}
	if c.dryRun == dryRunNone {
		tellClaims(ctx, c.Err, p, c.host(), group)
	}
	did, err := createGroup(ctx, p, group, bounded, c.dryRun)
	if err != nil {
		return err
	}
	if err := c.print(group, did); err != nil || !c.wait || c.dryRun != dryRunNone {
		return err
	}
	return kinds.WaitForNodes(ctx, c.Err, p, kinds.WaitConfig{Group: group, Timeout: c.timeout, Interval: c.interval})
}

// The values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

func dryRuns() []string { return []string{dryRunClient, dryRunServer, dryRunNone} }

func addDryRunFlag(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVar(value, "dry-run", dryRunNone, "client: only print what would be sent; server: have it checked but not kept; none: do it")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = dryRunClient
	_ = cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(dryRuns(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// checkCreate checks the flags that every "muster create" has.
func checkCreate(dryRun, output string) error {
	if !slices.Contains(dryRuns(), dryRun) {
		return terminal.UsageError{Err: fmt.Errorf("unknown --dry-run %q; there are: %s", dryRun, strings.Join(dryRuns(), ", "))}
	}
	return terminal.CheckOutput(output, createFormats()...)
}

// needRoot refuses machines that run pods, which root alone can make.
func needRoot(euid int, provider v1alpha1.Provider, dryRun string) error {
	if provider.Can(v1alpha1.RunPods) && euid != 0 && dryRun == dryRunNone {
		return fmt.Errorf("%s machines need root: start muster as root, or take --provider simulated", provider)
	}
	return nil
}

// group is the node group that the flags describe.
func (c *createCommand) group(name string, sized, bounded bool) (*v1alpha1.NodeGroup, error) {
	if err := checkCreate(c.dryRun, c.output); err != nil {
		return nil, err
	}
	labels, err := nodegroupspec.ParseLabels(c.labels)
	if err != nil {
		return nil, terminal.UsageError{Err: err}
	}
	if _, err := release.All().OfMinor(c.version); c.version != "" && err != nil {
		return nil, terminal.UsageError{Err: fmt.Errorf("--version: %w", err)}
	}
	taints, err := nodegroupspec.ParseTaints(c.taints)
	if err != nil {
		return nil, terminal.UsageError{Err: err}
	}
	bootstrap, err := c.bootstrapOf()
	if err != nil {
		return nil, terminal.UsageError{Err: err}
	}
	if !sized { // --min 3 alone asks for three
		c.nodes = max(c.nodes, c.minimum)
	}
	switch {
	case !bounded:
		c.maximum = v1alpha1.DefaultMaxSize(v1alpha1.Provider(c.provider), c.minimum, c.nodes)
	case !sized:
		c.nodes = min(c.nodes, c.maximum)
	}
	if err := needRoot(c.euid, v1alpha1.Provider(c.provider), c.dryRun); err != nil {
		return nil, err
	}
	group := &v1alpha1.NodeGroup{Spec: v1alpha1.NodeGroupSpec{
		Name:          name,
		Provider:      v1alpha1.Provider(c.provider),
		Version:       c.version,
		ScalingConfig: v1alpha1.ScalingConfig{MinSize: c.minimum, MaxSize: c.maximum, DesiredSize: c.nodes},
		Labels:        labels,
		Taints:        taints,
		Bootstrap:     bootstrap,
		Isolation:     v1alpha1.Isolation(c.isolation),
		SimulatePods:  c.simulatePods,
		NodeRole:      c.nodeRole,
	}}
	if c.repair {
		group.Spec.EKS.NodeRepairConfig = &v1alpha1.NodeRepairConfig{Enabled: new(true)}
	}
	group.Name = v1alpha1.NodeGroupSlug(name)
	return group, nil
}

// createGroup makes a group. If there is one of that name, the error lists the fields that differ; an equal one is left
// as it is, and its maxSize counts as equal if nobody bounded the group.
func createGroup(ctx context.Context, p *kinds.Client, group *v1alpha1.NodeGroup, bounded bool, dryRun string) (did string, err error) {
	var there v1alpha1.NodeGroup
	exists, err := create(ctx, p, group, dryRun, &there)
	if err != nil || !exists {
		return made(dryRun), err
	}
	if there.DeletionTimestamp != nil {
		return "", fmt.Errorf("nodegroup %q is being deleted: try again when it is gone", group.Spec.Name)
	}
	if !bounded {
		group.Spec.ScalingConfig.MaxSize = there.Spec.ScalingConfig.MaxSize
	}
	if difference := nodegroupspec.Differences(&there, group); difference != "" {
		return "", fmt.Errorf("nodegroup %q exists with %s: muster scale nodegroup %s changes its size, kubectl apply anything else", group.Spec.Name, difference, group.Spec.Name)
	}
	*group = there
	return unchanged(dryRun), nil
}

// create makes an object, or reads the one of its name that exists.
func create(ctx context.Context, p *kinds.Client, object client.Object, dryRun string, there client.Object) (exists bool, err error) {
	var opts []client.CreateOption
	if dryRun == dryRunServer {
		opts = append(opts, client.DryRunAll)
	}
	within, cancel := context.WithTimeout(ctx, kinds.AnswerTime)
	defer cancel()
	err = p.Create(within, object, opts...)
	if !apierrors.IsAlreadyExists(err) {
		return false, p.Explain(err)
	}
	return true, p.ReadKey(ctx, client.ObjectKeyFromObject(object), there)
}

// made and unchanged say what became of an object.
func made(dryRun string) string { return "created" + suffix(dryRun) }

func unchanged(dryRun string) string { return "unchanged" + suffix(dryRun) }

func suffix(dryRun string) string {
	switch dryRun {
	case dryRunServer:
		return " (server dry run)"
	case dryRunClient:
		return " (dry run)"
	}
	return ""
}

func (c *createCommand) print(group *v1alpha1.NodeGroup, did string) error {
	k := kinds.NodeGroups()
	if c.output == terminal.FormatName {
		_, err := fmt.Fprintln(c.Out, k.Qualified(kinds.NameOf(group)), did)
		return err
	}
	scheme, err := kinds.NewScheme()
	if err != nil {
		return err
	}
	return (&kinds.Printer{Out: c.Out, Scheme: scheme, Kind: k, Format: c.output}).Object(group)
}

// size reads a number of machines.
func size(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("invalid number of machines %q: must be a whole number, 0 or more", text)
	}
	return int32(n), nil
}
