// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cloud/eks/eksclient"
)

// upgradeTime is the default of --timeout: an Update fails by itself after 20 minutes without an effect.
const upgradeTime = 30 * time.Minute

// NewUpgradeCommand returns "muster upgrade".
func NewUpgradeCommand(o *terminal.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Bring a cluster, a node group or an add-on to another version",
		Args:  oneOf("cluster", "nodegroup", "addon"),
		RunE:  terminal.NothingToDo,
	}
	u := func() *upgradeCommand {
		return &upgradeCommand{Options: o, planes: kinds.NewDialers(), api: eksOf, interval: terminal.WaitInterval}
	}
	cmd.AddCommand(u().ofCluster(), u().ofNodeGroup(), u().ofAddon())
	return cmd
}

// eksAPI is the part of EKS's API that upgrades are asked of. Each answer is the id of an Update.
type eksAPI interface {
	UpdateClusterVersion(ctx context.Context, cluster, version string, force bool) (id string, err error)
	UpdateNodegroupVersion(ctx context.Context, cluster, group, version string) (id string, err error)
	UpdateAddon(ctx context.Context, cluster, addon string, change eksclient.AddonChange) (id string, err error)
}

// eksOf returns the EKS API of the account in the state directory.
func eksOf(ctx context.Context, o *terminal.Options) (eksAPI, error) {
	dir, err := o.OpenExisting()
	if err != nil {
		return nil, err
	}
	return eksclient.New(ctx, dir.IAMConfig(), dir.IAMCredentials())
}

// upgradeCommand holds the flags of "muster upgrade".
type upgradeCommand struct {
	*terminal.Options
	planes   kinds.Dialers
	api      func(context.Context, *terminal.Options) (eksAPI, error)
	interval time.Duration

	cluster, version, output string
	force, wait              bool
	timeout                  time.Duration
}

// addFlags adds the flags that every "muster upgrade" has.
func (c *upgradeCommand) addFlags(cmd *cobra.Command, version string, versions cobra.CompletionFunc) {
	flags := cmd.Flags()
	flags.StringVar(&c.version, "version", "", version)
	flags.BoolVar(&c.wait, "wait", false, "return when the upgrade has ended; 1 is the exit code if it failed")
	flags.DurationVar(&c.timeout, "timeout", upgradeTime, "how long to --wait")
	terminal.AddFormatFlag(cmd, &c.output, terminal.FormatName, createFormats()...)
	_ = cmd.RegisterFlagCompletionFunc("version", versions) // the flag exists
}

// upgrade is what a command is to do.
type upgrade struct {
	kind kinds.Kind
	// of is what is to be upgraded.
	of client.Object
	// is and wanted are versions. Wanted is empty if there is no version that comes next.
	is, wanted string
	// done reports whether of is at the wanted version already.
	done bool
	// version is the version that an Update of such an object brings it to, or "".
	version func(*v1alpha1.Update) string
	// ask has the API make an Update.
	ask func(ctx context.Context, api eksAPI) (id string, err error)
	// queued is the Update to make where the API refuses another one beside an update in progress; nil if none is made.
	queued *v1alpha1.Update
}

// name is what the object is called in messages: cluster "home".
func (u *upgrade) name() string { return fmt.Sprintf("%s %q", u.kind.Singular, kinds.NameOf(u.of)) }

// isOf reports whether an Update is of the object.
func (u *upgrade) isOf(update *v1alpha1.Update) bool {
	group, addon := "", ""
	switch u.of.(type) {
	case *v1alpha1.NodeGroup:
		group = kinds.NameOf(u.of)
	case *v1alpha1.Addon:
		addon = u.of.GetName()
	}
	return update.Spec.NodeGroup == group && update.Spec.Addon == addon && (update.Spec.TargetUID == "" || update.Spec.TargetUID == string(u.of.GetUID()))
}

// run asks for an upgrade, unless it is in progress or done, and waits for its end if it is to.
func (c *upgradeCommand) run(ctx context.Context, plan func(context.Context, *kinds.Client) (*upgrade, error)) error {
	if err := terminal.CheckOutput(c.output, createFormats()...); err != nil {
		return err
	}
	p, err := c.planes.Management(c.Options)
	if err != nil {
		return err
	}
	u, err := plan(ctx, p)
	if err != nil {
		return err
	}
	update, other, err := c.inProgress(ctx, p, u)
	did := "goes on"
	switch {
	case err != nil:
		return err
	case update != nil:
		u.wanted = u.version(update)
	case u.wanted == "" || u.done && (!other || u.queued == nil):
		return c.unchanged(u)
	default:
		if update, did, err = c.ask(ctx, p, u); err != nil {
			return err
		}
	}
	if c.output == terminal.FormatName {
		if _, err := fmt.Fprintf(c.Out, "%s upgrade from %s to %s %s: update %s\n", u.kind.Qualified(kinds.NameOf(u.of)), u.is, u.wanted, did, update.Name); err != nil {
			return err
		}
	}
	if c.wait {
		return c.finish(ctx, p, u, update)
	}
	return c.document(kinds.Updates(), update)
}

// inProgress is the Update in progress that brings the object to the wanted version in the end: the last of those that change its
// version; nil if there is none. Without --version it is an upgrade to whatever version. Other reports that the last one brings it to
// another version, or back.
func (c *upgradeCommand) inProgress(ctx context.Context, p *kinds.Client, u *upgrade) (update *v1alpha1.Update, other bool, err error) {
	var all v1alpha1.UpdateList
	if err := p.ReadAll(ctx, &all, client.InNamespace(u.of.GetNamespace())); err != nil {
		return nil, false, err
	}
	for i := range all.Items {
		of := &all.Items[i]
		if !u.isOf(of) || of.Phase() != v1alpha1.UpdateInProgress || u.version(of) == "" && !goesBack(of) {
			continue
		}
		if update == nil || of.CreationTimestamp.After(update.CreationTimestamp.Time) || of.CreationTimestamp.Equal(&update.CreationTimestamp) && of.Name > update.Name {
			update = of
		}
	}
	if update == nil {
		return nil, false, nil
	}
	to, upgrades := u.version(update), update.Spec.Type == v1alpha1.UpdateVersion || update.Spec.Type == v1alpha1.UpdateAddon
	if to != "" && (to == c.version || c.version == "" && upgrades) {
		return update, false, nil
	}
	return nil, true, nil
}

// goesBack reports whether an Update takes a node group back to what it was of before.
func goesBack(update *v1alpha1.Update) bool {
	return update.Spec.Change.Rollout != nil && update.Spec.Change.Rollout.Undo
}

// ask has the API make an Update, and reads it. Where the API refuses one because another is in progress, it is made as
// an object, and waits for that one. did says what became of it.
func (c *upgradeCommand) ask(ctx context.Context, p *kinds.Client, u *upgrade) (update *v1alpha1.Update, did string, err error) {
	api, err := c.api(ctx, c.Options)
	if err != nil {
		return nil, "", err
	}
	id, err := u.ask(ctx, api)
	if refusal, ok := errors.AsType[*eksclient.Error](err); ok && refusal.Code == inUse && u.queued != nil {
		err := p.Within(ctx, func(ctx context.Context) error { return p.Create(ctx, u.queued) })
		return u.queued, "is queued", err
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s is not upgraded to %s: %w", u.name(), u.wanted, err)
	}
	update = &v1alpha1.Update{}
	return update, "began", p.ReadKey(ctx, client.ObjectKey{Namespace: u.of.GetNamespace(), Name: id}, update)
}

// inUse is EKS's code for a request beside an update in progress.
const inUse = "ResourceInUseException"

// unchanged says that there is nothing to do.
func (c *upgradeCommand) unchanged(u *upgrade) error {
	if c.output != terminal.FormatName {
		return c.document(u.kind, u.of)
	}
	why := "it is at " + u.is
	if u.wanted == "" {
		why += ", and no later version is there"
	}
	_, err := fmt.Fprintf(c.Out, "%s unchanged: %s\n", u.kind.Qualified(kinds.NameOf(u.of)), why)
	return err
}

// document prints an object in JSON or YAML, where that is asked for.
func (c *upgradeCommand) document(k kinds.Kind, object client.Object) error {
	if c.output == terminal.FormatName {
		return nil
	}
	scheme, err := kinds.NewScheme()
	if err != nil {
		return err
	}
	return (&kinds.Printer{Out: c.Out, Scheme: scheme, Kind: k, Format: c.output}).Object(object)
}

// finish waits for the end of an Update, and says what came of it.
func (c *upgradeCommand) finish(ctx context.Context, p *kinds.Client, u *upgrade, update *v1alpha1.Update) error {
	ended, err := kinds.WaitForUpdate(ctx, c.Err, p, client.ObjectKeyFromObject(update), c.timeout, c.interval)
	if err != nil {
		return err
	}
	if err := c.document(kinds.Updates(), ended); err != nil {
		return err
	}
	switch ended.Phase() {
	case v1alpha1.UpdateFailed:
		return fmt.Errorf("%s is not upgraded to %s: update %s failed: %s", u.name(), u.wanted, ended.Name, kinds.UpdateMessage(ended))
	case v1alpha1.UpdateCancelled:
		return fmt.Errorf("%s is not upgraded to %s: update %s was cancelled", u.name(), u.wanted, ended.Name)
	case v1alpha1.UpdateInProgress, v1alpha1.UpdateSuccessful:
	}
	if ended.Status.Message != "" {
		_, _ = fmt.Fprintln(c.Err, ended.Status.Message)
	}
	if c.output != terminal.FormatName {
		return nil
	}
	took := ended.Status.FinishedAt.Sub(ended.CreationTimestamp.Time)
	_, err = fmt.Fprintf(c.Out, "%s upgraded from %s to %s in %s\n", u.kind.Qualified(kinds.NameOf(u.of)), u.is, u.wanted, took)
	return err
}

// clusterOf reads the cluster that --cluster names, or the only one.
func clusterOf(ctx context.Context, p *kinds.Client, named string) (*v1alpha1.Cluster, error) {
	name, err := p.Cluster(ctx, named)
	if err != nil {
		return nil, err
	}
	return clusterNamed(ctx, p, name)
}

// clusterNamed reads the cluster of a name, and refuses one that has not run yet.
func clusterNamed(ctx context.Context, p *kinds.Client, name string) (*v1alpha1.Cluster, error) {
	objects, _, err := p.Objects(ctx, kinds.Clusters())
	if err != nil {
		return nil, err
	}
	chosen, err := kinds.Clusters().Choose(objects, []string{name})
	if err != nil {
		return nil, err
	}
	found := chosen[0].(*v1alpha1.Cluster)
	if found.Status.Version == "" {
		return nil, fmt.Errorf("%s has not run yet: muster get clusters shows how it is", kinds.ClusterState(found))
	}
	return found, nil
}

// errTwice refuses a cluster that is named twice.
var errTwice = errors.New("name the cluster once: as an argument or by --cluster")
