// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/addons/catalogue"
	"muster.dev/muster/internal/addons/karpenter"
	"muster.dev/muster/internal/plane/readiness"
)

// createAddonCommand holds the flags of "muster create addon".
type createAddonCommand struct {
	*terminal.Options
	planes   kinds.Dialers
	interval time.Duration

	cluster, version, values, valuesFile string
	role, conflicts, dryRun, output      string
	wait, yes                            bool
	timeout                              time.Duration

	builder *builder // this program's if nil
}

func addonNames() []string {
	var names []string
	for _, known := range catalogue.New() {
		names = append(names, known.Name)
	}
	return names
}

// addonVersions are the versions of an add-on, each for clusters of some minors. The service refuses one of another minor.
func addonVersions(name string) []string {
	var versions []string
	for _, known := range catalogue.Versions(name) {
		versions = append(versions, known.Version)
	}
	return versions
}

func (c *createAddonCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "addon NAME",
		Aliases: []string{"addons"},
		Short:   "Make an EKS add-on of a cluster",
		Long: `Make an EKS add-on of a cluster. Its objects are applied into the cluster, and its status says whether it is healthy. The add-ons:
  ` + strings.Join(addonNames(), ", ") + `

The programs of some are not part of make build: on a terminal it says how long it takes to build them, and asks whether to. In a script, --yes agrees.

Made again with the same settings it stays as it is. To change an add-on: aws eks update-addon, or kubectl apply.`,
		Example: `  # Take over the CoreDNS that the cluster began with
  muster create addon coredns --wait

  # The same with settings, which win over what is there
  muster create addon coredns --values '{"replicaCount": 3}' --conflicts overwrite

  # Ingress and the Gateway API, in a script
  muster create addon traefik --yes --wait

  # The same as a document, for kubectl apply
  muster create addon coredns --dry-run=client -o yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(addonNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	flags := cmd.Flags()
	kinds.AddClusterFlag(cmd, c.Options, c.planes, &c.cluster, "cluster of the add-on (default: the only one there is)")
	flags.StringVar(&c.version, "version", "", "version of the add-on, such as v1.15.0-eksbuild.1 (default: the one that there is)")
	flags.StringVar(&c.values, "values", "", "settings in JSON or YAML")
	flags.StringVar(&c.valuesFile, "values-file", "", "file with settings in JSON or YAML")
	flags.StringVar(&c.role, "role-arn", "", "IAM role of the add-on's service account, by ARN")
	flags.StringVar(&c.conflicts, "conflicts", "none", "what becomes of fields that somebody else has set: none (the add-on fails) or overwrite")
	flags.BoolVar(&c.wait, "wait", false, "return when the add-on is ACTIVE")
	flags.BoolVarP(&c.yes, "yes", "y", false, "build the add-on's programs without asking, if that was not done yet")
	flags.DurationVar(&c.timeout, "timeout", 5*time.Minute, "how long to --wait")
	addDryRunFlag(cmd, &c.dryRun)
	terminal.AddFormatFlag(cmd, &c.output, terminal.FormatName, createFormats()...)
	_ = cmd.RegisterFlagCompletionFunc("conflicts", cobra.FixedCompletions([]string{"none", "overwrite"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	return cmd
}

func (c *createAddonCommand) run(ctx context.Context, name string) error {
	wanted, err := c.addon(name)
	if err != nil {
		return err
	}
	p, err := c.planes.Management(c.Options)
	cluster := c.cluster
	if err == nil && (cluster == "" || c.dryRun != dryRunClient) {
		cluster, err = p.Cluster(ctx, cluster)
	}
	if cluster != "" {
		wanted.Namespace = v1alpha1.ClusterSlug(cluster)
	}
	if c.dryRun == dryRunClient {
		if cluster == "" {
			return fmt.Errorf("cannot choose the cluster of the add-on (name it with --cluster): %w", err)
		}
		return c.print(wanted, made(c.dryRun))
	}
	if err == nil {
		err = besideCompute(ctx, p, wanted)
	}
	if err != nil {
		return err
	}
	if c.dryRun == dryRunNone {
		if err := c.build(ctx, name); err != nil {
			return err
		}
	}
	var there v1alpha1.Addon
	exists, err := create(ctx, p, wanted, c.dryRun, &there)
	if err != nil {
		return err
	}
	did := made(c.dryRun)
	if exists {
		switch difference := addonDifference(&there, wanted); {
		case there.DeletionTimestamp != nil:
			return fmt.Errorf("add-on %q is being deleted: try again when it is gone", name)
		case difference != "":
			return fmt.Errorf("add-on %q exists with another %s: aws eks update-addon or kubectl apply changes it", name, difference)
		}
		*wanted, did = there, unchanged(c.dryRun)
	}
	if err := c.print(wanted, did); err != nil || !c.wait || c.dryRun != dryRunNone {
		return err
	}
	return c.waitUntilActive(ctx, p, wanted)
}

// besideCompute refuses Karpenter as an add-on of a cluster whose control plane runs it, before anything is built.
func besideCompute(ctx context.Context, p *kinds.Client, wanted *v1alpha1.Addon) error {
	if wanted.Spec.AddonName != karpenter.Name {
		return nil
	}
	var cluster v1alpha1.Cluster
	if err := p.ReadKey(ctx, client.ObjectKey{Namespace: wanted.Namespace, Name: wanted.Namespace}, &cluster); err != nil {
		return err
	}
	if !cluster.Spec.Compute.On() {
		return nil
	}
	return errors.New(karpenter.InControlPlane(cluster.Spec.Name))
}

// build makes sure that the programs of an add-on are built.
func (c *createAddonCommand) build(ctx context.Context, name string) error {
	builds := c.builder
	if builds == nil {
		var err error
		if builds, err = newBuilder(c.Streams); err != nil {
			return err
		}
	}
	known, _ := catalogue.New().Find(name)
	return builds.ensure(ctx, known, c.Streams, c.yes)
}

// addon is the add-on that the flags describe.
func (c *createAddonCommand) addon(name string) (*v1alpha1.Addon, error) {
	if err := checkCreate(c.dryRun, c.output); err != nil {
		return nil, err
	}
	known, ok := catalogue.New().Find(name)
	resolve := map[string]v1alpha1.ResolveConflicts{"none": v1alpha1.ConflictsNone, "overwrite": v1alpha1.ConflictsOverwrite}[strings.ToLower(c.conflicts)]
	switch {
	case !ok:
		return nil, terminal.UsageError{Err: fmt.Errorf("unknown add-on %q%s; there are: %s", name, terminal.DidYouMean(name, addonNames()), strings.Join(addonNames(), ", "))}
	case c.version != "" && !slices.Contains(addonVersions(name), c.version):
		return nil, terminal.UsageError{Err: fmt.Errorf("--version %q: add-on %s has the version %s", c.version, name, strings.Join(addonVersions(name), " or "))}
	case resolve == "":
		return nil, terminal.UsageError{Err: fmt.Errorf("--conflicts %q is not known; there are: none, overwrite", c.conflicts)}
	case c.values != "" && c.valuesFile != "":
		return nil, terminal.UsageError{Err: errors.New("give --values or --values-file, not both")}
	}
	values := c.values
	if c.valuesFile != "" {
		raw, err := os.ReadFile(c.valuesFile)
		if err != nil {
			return nil, fmt.Errorf("reading --values-file: %w", err)
		}
		values = string(raw)
	}
	if _, err := known.Read(values); err != nil {
		return nil, terminal.UsageError{Err: fmt.Errorf("the settings do not follow the schema of %s %s: %w", name, known.Version, err)}
	}
	wanted := &v1alpha1.Addon{Spec: v1alpha1.AddonSpec{
		AddonName: name, Version: c.version, ConfigurationValues: values, ServiceAccountRoleARN: c.role, ResolveConflicts: resolve,
	}}
	wanted.Name = name
	return wanted, nil
}

// addonDifference is the setting in which an add-on that is there differs from one that is wanted; empty if none does.
func addonDifference(is, wanted *v1alpha1.Addon) string {
	for _, setting := range []struct{ name, is, wanted string }{
		{"version", is.Spec.Version, terminal.Or(wanted.Spec.Version, is.Spec.Version)},
		{"configurationValues", is.Spec.ConfigurationValues, wanted.Spec.ConfigurationValues},
		{"serviceAccountRoleARN", is.Spec.ServiceAccountRoleARN, wanted.Spec.ServiceAccountRoleARN},
		{"resolveConflicts", terminal.Or(string(is.Spec.ResolveConflicts), string(v1alpha1.ConflictsNone)), string(wanted.Spec.ResolveConflicts)},
	} {
		if setting.is != setting.wanted {
			return setting.name
		}
	}
	return ""
}

// waitUntilActive returns when the add-on is ACTIVE, or cannot become so by waiting.
func (c *createAddonCommand) waitUntilActive(ctx context.Context, p *kinds.Client, wanted *v1alpha1.Addon) error {
	progress := terminal.NewWaitProgress(c.Err)
	defer progress.End()
	state := ""
	err := terminal.Poll(ctx, c.timeout, c.interval, func(ctx context.Context) (bool, error) {
		var now v1alpha1.Addon
		if err := p.ReadKey(ctx, client.ObjectKeyFromObject(wanted), &now); err != nil {
			return false, err
		}
		phase, message := now.Phase(), readiness.Message(now.Status.Conditions)
		state = fmt.Sprintf("addon %s: %s", now.Name, phase)
		progress.Show(state)
		switch phase {
		case v1alpha1.AddonActive:
			return true, nil
		case v1alpha1.AddonCreateFailed, v1alpha1.AddonUpdateFailed, v1alpha1.AddonDegraded, v1alpha1.AddonDeleting:
			return false, terminal.Fatal(fmt.Errorf("add-on %q is %s: %s", now.Name, phase, message))
		default:
			return false, nil
		}
	})
	if errors.Is(err, terminal.ErrTimeUp) {
		return fmt.Errorf("%s: %w", state, err)
	}
	return err
}

func (c *createAddonCommand) print(wanted *v1alpha1.Addon, did string) error {
	k := kinds.Addons()
	if c.output == terminal.FormatName {
		_, err := fmt.Fprintln(c.Out, k.Qualified(kinds.NameOf(wanted)), did)
		return err
	}
	scheme, err := kinds.NewScheme()
	if err != nil {
		return err
	}
	return (&kinds.Printer{Out: c.Out, Scheme: scheme, Kind: k, Format: c.output}).Object(wanted)
}
