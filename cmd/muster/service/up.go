// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/cmd/muster/tools"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/cluster/session"
	"muster.dev/muster/internal/image/pullthroughconfig"
	"muster.dev/muster/internal/machine/hostroot"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/network/loadbalancer"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/runner"
	"muster.dev/muster/internal/plane/supervise"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/statedir"
)

// defaultNodes is the size of a new cluster's node group without --nodes.
const defaultNodes = 3

type upOptions struct {
	*terminal.Options
	file       string
	nodes      int32
	provider   string
	version    string
	region     string
	issuerHost string
	egress     string
	balancers  string
	hostRoot   []string
	kubeconfig string
	dryRun     bool
	timeout    time.Duration
	format     string

	simulatePods, simulatePodsSet bool

	auto, autoSet bool

	nodesSet, providerSet, versionSet, issuerHostSet, hostRootSet bool
}

// NewUpCommand returns "muster up".
func NewUpCommand(o *terminal.Options) *cobra.Command {
	up := &upOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the account with its clusters, wait until every node is Ready, and write a kubeconfig",
		Long: `Start the account in the background, or join the service that runs already, wait until every node of its clusters is
Ready, and print how long each took to come in; with -o wide, every step of it. The first time it makes a cluster. Run again, it
changes nothing.

Without a file the first cluster is called "muster" and has one node group, "default". A file holds one Cluster and any
number of NodeGroup documents; a cluster that does not exist yet is made, and run with the same file again after a change, the
change is made. With a file or --cluster it waits for that cluster alone.`,
		Example: `  # Three nodes on this machine (needs root)
  muster up

  # A cluster of another minor version of Kubernetes
  muster up --version 1.37

  # Machines that come and go with pods, after make karpenter
  muster up --auto

  # As described in a file
  muster up -f muster.yaml

  # 500 simulated nodes, as an ordinary user
  muster up --provider simulated --nodes 500

  # The same, with nodes that take pods and report them as running
  muster up --provider simulated --nodes 500 --simulate-pods

  # Every step of every node's way in, with its milliseconds
  muster up -o wide

  # What would run, with every flag and file
  muster up --dry-run`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			within, err := up.check(cmd.Flags())
			if err != nil {
				return err
			}
			return up.run(cmd, within)
		},
	}
	up.addFlags(cmd)
	return cmd
}

// check reads which flags were given and refuses what they cannot be. It returns the range for load balancers, which is
// not valid if none is given.
func (up *upOptions) check(given *pflag.FlagSet) (netip.Prefix, error) {
	up.nodesSet, up.providerSet, up.versionSet = given.Changed("nodes"), given.Changed("provider"), given.Changed("version")
	up.simulatePodsSet, up.autoSet = given.Changed("simulate-pods"), given.Changed("auto")
	up.issuerHostSet = given.Changed("issuer-host")
	up.hostRootSet = given.Changed("allow-host-root")
	if up.file != "" && (up.nodesSet || up.providerSet || up.versionSet || up.simulatePodsSet || up.autoSet) {
		return netip.Prefix{}, terminal.UsageError{Err: errors.New("--auto, --nodes, --provider, --simulate-pods and --version say what a file says: give either them or --file")}
	}
	if providers := v1alpha1.ProviderNames(); !slices.Contains(providers, up.provider) {
		return netip.Prefix{}, fmt.Errorf("unknown --provider %q; there are: %s", up.provider, strings.Join(providers, ", "))
	}
	if up.region != "" {
		if _, err := region.Find(up.region); err != nil {
			return netip.Prefix{}, fmt.Errorf("--region: %w", err)
		}
	}
	if err := up.checkEgress(given.Changed("egress")); err != nil {
		return netip.Prefix{}, err
	}
	return up.checkBalancerRange()
}

// explicit reports whether the command line says how the cluster is to be.
func (up *upOptions) explicit() bool {
	return up.file != "" || up.nodesSet || up.versionSet || up.autoSet
}

func (up *upOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&up.file, "file", "f", "", "file with Cluster and NodeGroup documents (muster.yaml in this directory, if there is one)")
	flags.Int32Var(&up.nodes, "nodes", defaultNodes, "number of nodes in the default node group")
	flags.BoolVar(&up.auto, "auto", false, "run Karpenter in the control plane, which launches machines for pending pods; without --nodes a new cluster has no other machines")
	flags.StringVar(&up.provider, "provider", string(v1alpha1.DefaultProvider), "where machines come from: local or simulated")
	flags.BoolVar(&up.simulatePods, "simulate-pods", false, "let simulated machines of the default node group take pods, and report them as running")
	flags.StringVar(&up.version, "version", "", "minor version of Kubernetes of a new cluster, such as "+release.Default().Minor()+", which is the default")
	flags.StringVar(&up.region, "region", "", "AWS region that everything is in, chosen at the first start and kept (default "+region.Default+")")
	flags.StringVar(&up.issuerHost, "issuer-host", "", "host in the URL of service account tokens' issuers, chosen at the first start and kept; \"\" is an address of the account's (default this host's name if that is a loopback address)")
	flags.StringVar(&up.egress, "egress", "", "way out of the default VPC, chosen at the first start: NAT or None (default $"+egressVariable+" or NAT)")
	flags.StringVar(&up.balancers, "load-balancer-range", "", "range of the host's addresses for load balancers made from now on, kept (default "+loadbalancer.DefaultRange.String()+")")
	flags.StringSliceVar(&up.hostRoot, "allow-host-root", nil, "clusters that may have node groups with isolation none, where root on a machine is root on this host; kept, and \"\" is none (default none)")
	flags.StringVar(&up.kubeconfig, "kubeconfig", "", "file to add contexts to, instead of $KUBECONFIG or ~/.kube/config")
	flags.BoolVar(&up.dryRun, "dry-run", false, "print every component that would run, and change nothing")
	flags.DurationVar(&up.timeout, "timeout", 5*time.Minute, "how long to wait for the nodes")
	terminal.AddOutputFlag(cmd, &up.format, terminal.FormatWide)
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "filename" { // as kubectl calls it
			name = "file"
		}
		return pflag.NormalizedName(name)
	})
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(v1alpha1.ProviderNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("version", cobra.FixedCompletions(release.All().Minors(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("region", cobra.FixedCompletions(region.Names(), cobra.ShellCompDirectiveNoFileComp))
}

// egressVariable names the way out of the default VPC of a new account where the command line does not.
const egressVariable = "MUSTER_EGRESS"

// checkEgress fills in the way out of the default VPC of a new account. Later it is the VPC that says it: a flag that
// says otherwise is refused.
func (up *upOptions) checkEgress(given bool) error {
	from := "--egress"
	if !given {
		up.egress, from = os.Getenv(egressVariable), "$"+egressVariable
	}
	switch egresspolicy.Mode(up.egress) {
	case "", egresspolicy.NAT, egresspolicy.None:
	default:
		return fmt.Errorf("%s is %q: must be NAT or None", from, up.egress)
	}
	dir, err := up.Open()
	if err != nil || !given {
		return err
	}
	all, err := vpc.List(dir.VPCs())
	if err != nil {
		return err
	}
	for _, network := range all {
		if network.Default && network.Egress.IsOpen() != (up.egress == string(egresspolicy.NAT)) {
			return fmt.Errorf("--egress: the default VPC %s has its way out already: change spec.egress.mode of the VPC instead", network.ID)
		}
	}
	return nil
}

// checkBalancerRange is the range for load balancers of the command line; it is not valid if there is none.
func (up *upOptions) checkBalancerRange() (netip.Prefix, error) {
	if up.balancers == "" {
		return netip.Prefix{}, nil
	}
	within, err := loadbalancer.ParseRange(up.balancers)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("--load-balancer-range: %w", err)
	}
	return within, nil
}

func (up *upOptions) run(cmd *cobra.Command, balancers netip.Prefix) error {
	ctx := cmd.Context()
	dir, err := up.Open()
	if err != nil {
		return err
	}
	hostRoot, err := up.allowHostRoot()
	if err != nil {
		return err
	}
	wanted, err := up.wanted(dir, hostRoot)
	if err != nil {
		return err
	}
	if up.dryRun {
		return up.printSpecs(dir, wanted[0])
	}
	claimed := claims(servicestatus.ThisHost(), dir, wanted)
	tell := up.checked(claimed)
	var sessions []session.Session
	var outcomes []session.Outcome
	for _, config := range wanted {
		session := session.Session{
			State: dir, Wanted: config, Region: up.region, Egress: egresspolicy.Mode(up.egress), BalancerRange: balancers, HostRoot: hostRoot, Explicit: up.explicit(),
			IssuerHost: up.issuerHost, IssuerByAddress: up.issuerHostSet && up.issuerHost == "",
			Running: func() ([]runner.Running, error) { return supervise.Running(dir) }, Checked: tell,
		}
		outcome, err := session.Start(ctx)
		if err != nil {
			return err
		}
		tellOutcome(up.Err, outcome, session)
		sessions, outcomes = append(sessions, session), append(outcomes, outcome)
	}
	if err := pullthroughconfig.WriteProxy(dir.Proxy(), pullthroughconfig.ProxyOfEnvironment()); err != nil {
		fmt.Fprintf(up.Err, "Warning: images of public registries are pulled as before: %v\n", err)
	}
	var status servicestatus.Status
	clusters := make([]servicestatus.Cluster, len(sessions))
	for i, session := range sessions {
		if len(sessions) > 1 {
			fmt.Fprintf(up.Err, "Cluster %s\n", session.Wanted.Cluster.Spec.Name)
		}
		progress := newProgress(up.Err)
		if status, clusters[i], err = session.Wait(ctx, up.timeout, progress.show); err != nil {
			return err
		}
	}
	unmerged := tools.MergeKubeconfig(up.Options, dir, up.kubeconfig, sessions[0].Cluster(), outcomes[0].Created)
	if unmerged != nil {
		fmt.Fprintf(up.Err, "Warning: %v\n", unmerged)
	}
	if err := waitForKinds(ctx, dir); err != nil {
		return err
	}
	var joins []joinlog.Way
	for _, session := range sessions {
		of, err := session.Joins(ctx)
		if err != nil {
			return err
		}
		joins = append(joins, of...)
	}
	if up.format == terminal.FormatJSON || up.format == terminal.FormatYAML {
		return terminal.PrintData(up.Out, up.format, joins)
	}
	if !slices.ContainsFunc(outcomes, func(o session.Outcome) bool { return !o.Unchanged }) {
		for _, cluster := range clusters {
			fmt.Fprintf(up.Err, "Cluster %s is up already; nothing was changed.\n", cluster.Name)
		}
	}
	show := printJoins
	if up.format == terminal.FormatWide {
		show = printSteps
	}
	if err := show(up.Out, joins); err != nil {
		return err
	}
	printNotes(up.Err, status.Notes)
	for _, o := range outcomes {
		if o.Unnamed != nil {
			fmt.Fprintf(up.Err, "\nPods cannot reach the issuer of service account tokens: %v. %s\n", o.Unnamed, issuer.WithoutName)
		}
	}
	if claimed.Nodes > 0 && slices.ContainsFunc(outcomes, func(o session.Outcome) bool { return o.Resumed }) {
		fmt.Fprintln(up.Err, "\nPods of before are started again in the next half minute; until then kubectl may show them as Unknown, or as they were.")
	}
	for i, cluster := range clusters {
		fmt.Fprintf(up.Err, "\nCluster %s is ready at %s\nTry: %s\n", cluster.Name, cluster.Endpoint, firstLook(sessions[i].Wanted.Cluster.Spec.Name, unmerged))
	}
	return nil
}

// firstLook is the command that shows the cluster's nodes. Where its context could not be written, one of its name may
// lead into another.
func firstLook(name string, unmerged error) string {
	if unmerged != nil {
		return "muster get nodes"
	}
	return "kubectl --context " + name + " get nodes"
}

// wanted is what the command line asks for: a file, or flags, or else what was set up before, which may be several
// clusters.
func (up *upOptions) wanted(dir statedir.Dir, hostRoot hostroot.Clusters) ([]clusterconfig.Config, error) {
	file := up.file
	if file == "" && !dir.Exists() && !up.nodesSet && !up.autoSet && terminal.Exists(defaultFile) {
		file = defaultFile
	}
	if file != "" {
		wanted, err := clusterconfig.Read(file)
		return []clusterconfig.Config{wanted}, err
	}
	clusters, err := dir.ListClusters()
	if err != nil {
		return nil, err
	}
	if len(clusters) > 1 && up.Cluster == "" && !up.nodesSet && !up.providerSet && !up.simulatePodsSet && !up.versionSet && !up.autoSet && !up.dryRun {
		if all := up.all(clusters); len(all) > 0 {
			return all, nil
		}
	}
	if len(clusters) > 0 {
		wanted, err := up.saved()
		return []clusterconfig.Config{wanted}, err
	}
	wanted := clusterconfig.Default(int(up.nodes), v1alpha1.Provider(up.provider))
	wanted.Cluster.Spec.Version = up.version
	wanted.NodeGroups[0].Spec.SimulatePods = up.simulatePods
	if up.auto && !up.nodesSet {
		wanted.NodeGroups = nil
	}
	up.compute(wanted.Cluster)
	withoutIDs(dir, wanted, hostRoot)
	return []clusterconfig.Config{wanted}, wanted.Validate()
}

// all returns the configurations of all clusters, from their records. Clusters that are being removed are left out, and
// so are clusters whose record is damaged: the service does not run these, and the other clusters need not wait.
func (up *upOptions) all(clusters []statedir.Cluster) []clusterconfig.Config {
	var all []clusterconfig.Config
	for _, cluster := range clusters {
		if terminal.Exists(cluster.Deleting()) || !terminal.Exists(cluster.Record()) {
			continue
		}
		saved, err := clusterconfig.Read(cluster.Record())
		if err != nil {
			fmt.Fprintf(up.Err, "Warning: cluster %s is left out: %v\n", cluster.Namespace(), err)
			continue
		}
		all = append(all, saved)
	}
	return all
}

func (up *upOptions) printSpecs(dir statedir.Dir, wanted clusterconfig.Config) error {
	specs, err := session.Plan(dir, up.region, wanted)
	if err != nil {
		return err
	}
	for i := range specs {
		specs[i] = specs[i].Redacted()
	}
	format := terminal.FormatYAML
	if up.format == terminal.FormatJSON {
		format = up.format
	}
	return terminal.PrintData(up.Out, format, specs)
}

// tellOutcome says what a session has changed besides its cluster.
func tellOutcome(w io.Writer, outcome session.Outcome, of session.Session) {
	if len(outcome.Freed) > 0 {
		fmt.Fprintf(w, "FUSE file systems on %s were ended: the service before waited for them, and could not end.\n", strings.Join(outcome.Freed, ", "))
	}
	if outcome.HostRootChanged {
		tellHostRoot(w, of.HostRoot)
	}
	if outcome.RangeChanged && !outcome.Created {
		fmt.Fprintf(w, "Load balancers made from now on have addresses of %s; those that are there keep theirs.\n", of.BalancerRange)
	}
}
