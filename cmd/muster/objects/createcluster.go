// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/platform/release"
)

// maxConfig is the largest configuration that a file may hold; clusterconfig has the same limit.
const maxConfig = 1 << 20

// createClusterCommand holds the flags of "muster create cluster".
type createClusterCommand struct {
	*terminal.Options
	planes   kinds.Dialers
	euid     int
	host     func() capacity.Host
	interval time.Duration

	file, provider, version string
	nodes                   int32
	subnets                 []string
	protect                 bool
	dryRun, output          string
	kubeconfig              string
	wait                    bool
	timeout                 time.Duration
}

func (c *createClusterCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cluster [NAME]",
		Aliases: []string{"clusters"},
		Short:   "Make a cluster in the account that runs here",
		Long: `Make a cluster in the account that runs here, beside those there are. It has a control plane, authorities, keys and
a context of its own. With --nodes it gets a node group called "default"; muster create nodegroup makes others.

A file holds one Cluster and any number of NodeGroups, as for muster up. It may leave the name of the cluster to the
command line.

Made again with the same settings everything stays as it is. To change a cluster: muster up -f, or kubectl apply.`,
		Example: `  # A cluster with two nodes; return when they are Ready, and add its context to your kubeconfig
  muster create cluster blue --nodes 2 --wait

  # Without machines that run pods, as an ordinary user
  muster create cluster test --nodes 50 --provider simulated

  # In a VPC of its own
  muster create cluster blue --nodes 2 --subnets subnet-0123456789abcdef0,subnet-0123456789abcdef1

  # As described in a file
  muster create cluster -f blue.yaml --wait

  # The same as documents, for kubectl
  muster create cluster blue --nodes 2 --dry-run=client -o yaml | kubectl --context muster-management apply -f -`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			if err := c.check(cmd.Flags(), name); err != nil {
				return err
			}
			return c.run(cmd.Context(), name)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&c.file, "file", "f", "", "file with a Cluster and NodeGroups; - is standard input")
	flags.Int32VarP(&c.nodes, "nodes", "N", 0, "number of machines of a node group \"default\"; 0 makes no group")
	flags.StringVar(&c.provider, "provider", string(v1alpha1.DefaultProvider), "with --nodes: where machines come from, local (namespaces of this host; needs root) or simulated (they run no pods)")
	flags.StringVar(&c.version, "version", "", "minor version of Kubernetes, such as "+release.Default().Minor()+", which is the default")
	flags.StringSliceVar(&c.subnets, "subnets", nil, "subnets that the cluster is in, by id: of one VPC, in two zones or more (default: those of the default VPC)")
	flags.BoolVar(&c.protect, "deletion-protection", false, "the cluster cannot be deleted until this is switched off")
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "with --wait: file to add the context to, instead of $KUBECONFIG or ~/.kube/config")
	flags.BoolVar(&c.wait, "wait", false, "return when the cluster and every machine's node is Ready, and add the cluster's context to your kubeconfig")
	flags.DurationVar(&c.timeout, "timeout", 5*time.Minute, "how long to --wait")
	addDryRunFlag(cmd, &c.dryRun)
	terminal.AddFormatFlag(cmd, &c.output, terminal.FormatName, createFormats()...)
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "filename" { // as kubectl calls it
			name = "file"
		}
		return pflag.NormalizedName(name)
	})
	_ = cmd.RegisterFlagCompletionFunc("version", cobra.FixedCompletions(release.All().Minors(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(v1alpha1.ProviderNames(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

// fileSays are the flags for what a file says.
func fileSays() []string {
	return []string{"nodes", "provider", "version", "subnets", "deletion-protection"}
}

// check refuses flags that contradict each other or would do nothing.
func (c *createClusterCommand) check(flags *pflag.FlagSet, name string) error {
	if err := checkCreate(c.dryRun, c.output); err != nil {
		return err
	}
	var wrong error
	switch {
	case c.Cluster != "":
		wrong = errors.New("--cluster names a cluster that there is: give the name of the new one as an argument")
	case c.file == "" && name == "":
		wrong = errors.New("NAME is missing: give it, or a file with a Cluster (-f)")
	case flags.Changed("provider") && !flags.Changed("nodes") && c.file == "":
		wrong = errors.New("--provider is that of the node group that --nodes makes: give both")
	case c.kubeconfig != "" && !c.wait:
		wrong = errors.New("--kubeconfig needs --wait; without, muster kubeconfig adds the context later")
	}
	if c.file != "" {
		for _, flag := range fileSays() {
			if flags.Changed(flag) {
				wrong = fmt.Errorf("--%s says what a file says: give either it or --file", flag)
				break
			}
		}
	}
	if wrong != nil {
		return terminal.UsageError{Err: wrong}
	}
	return nil
}

// wanted is the cluster, with its node groups, that the file or the flags describe.
func (c *createClusterCommand) wanted(name string) (clusterconfig.Config, error) {
	if c.file != "" {
		data, err := terminal.ReadInput(c.In, c.file, "the configuration", maxConfig)
		if err != nil {
			return clusterconfig.Config{}, err
		}
		file := c.file
		if file == terminal.StandardInput {
			file = "standard input"
		}
		return clusterconfig.ParseNamed(file, data, name)
	}
	wanted := clusterconfig.Named(name, int(c.nodes), v1alpha1.Provider(c.provider))
	wanted.Cluster.Spec.Version, wanted.Cluster.Spec.DeletionProtection = c.version, c.protect
	for _, id := range c.subnets {
		wanted.Cluster.Spec.Network.SubnetIDs = append(wanted.Cluster.Spec.Network.SubnetIDs, v1alpha1.SubnetID(id))
	}
	if c.nodes == 0 {
		wanted.NodeGroups = nil
	}
	return wanted, wanted.Validate()
}
