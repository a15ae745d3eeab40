// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/iampolicy"
	"muster.dev/muster/internal/plane/podidentity"
)

// createPodIdentityCommand holds the flags of "muster create podidentityassociation".
type createPodIdentityCommand struct {
	*terminal.Options
	planes kinds.Dialers

	cluster, namespace, account, role, target, policyFile string
	noTags                                                bool
	dryRun, output                                        string
}

func (c *createPodIdentityCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "podidentityassociation",
		Aliases: []string{"podidentityassociations", "pia"},
		Short:   "Give the pods of a service account an IAM role (EKS Pod Identity)",
		Long: `Give the pods of a service account the credentials of an IAM role, by EKS Pod Identity. Neither the service account nor its
namespace need be there. The role's trust policy must let pods.eks.amazonaws.com do sts:AssumeRole and sts:TagSession; "muster auth pod"
says whether it does. Pods that run already get what their SDKs need when they are made again.

Made again with the same settings it stays as it is. A service account has one association.`,
		Example: `  # The pods of shop/app have the role app
  muster create podidentityassociation --namespace shop --service-account app --role-arn arn:aws:iam::000000000000:role/app

  # They have the role far, which the role app assumes for them
  muster create podidentityassociation --namespace shop --service-account app \
    --role-arn arn:aws:iam::000000000000:role/app --target-role-arn arn:aws:iam::000000000000:role/far

  # Which identity has a pod by that?
  muster auth pod shop/web-0`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	kinds.AddClusterFlag(cmd, c.Options, c.planes, &c.cluster, "cluster of the service account (default: the only one there is)")
	flags.StringVarP(&c.namespace, "namespace", "n", "", "namespace of the service account")
	flags.StringVar(&c.account, "service-account", "", "name of the service account")
	flags.StringVar(&c.role, "role-arn", "", "IAM role of its pods, by ARN")
	flags.StringVar(&c.target, "target-role-arn", "", "role that is assumed with the first one's session, and whose credentials the pods get instead, by ARN")
	flags.BoolVar(&c.noTags, "disable-session-tags", false, "leave EKS's tags of cluster, namespace, service account and pod out of the session")
	flags.StringVar(&c.policyFile, "policy-file", "", "file with a session policy that limits the role; it needs --disable-session-tags")
	addDryRunFlag(cmd, &c.dryRun)
	terminal.AddFormatFlag(cmd, &c.output, terminal.FormatName, createFormats()...)
	return cmd
}

func (c *createPodIdentityCommand) run(ctx context.Context) error {
	wanted, err := c.association()
	if err != nil {
		return err
	}
	p, err := c.planes.Management(c.Options)
	cluster := c.cluster
	if err == nil && (cluster == "" || c.dryRun != dryRunClient) {
		cluster, err = p.Cluster(ctx, cluster)
	}
	if cluster != "" {
		wanted.Namespace, wanted.Spec.ClusterName = v1alpha1.ClusterSlug(cluster), cluster
	}
	if c.dryRun == dryRunClient {
		if cluster == "" {
			return fmt.Errorf("cannot choose the cluster of the association (name it with --cluster): %w", err)
		}
		return c.print(wanted, made(c.dryRun))
	}
	if err != nil {
		return err
	}
	objects, _, err := p.Objects(ctx, kinds.PodIdentityAssociations(), client.InNamespace(wanted.Namespace))
	if err != nil {
		return err
	}
	for _, object := range objects {
		there, ok := object.(*v1alpha1.PodIdentityAssociation)
		if !ok || there.Spec.ClusterName != cluster || kinds.ServiceAccountOf(there) != kinds.ServiceAccountOf(wanted) {
			continue
		}
		if difference := associationDifference(&there.Spec, &wanted.Spec); difference != "" {
			return fmt.Errorf("service account %s has the association %s with another %s: aws eks update-pod-identity-association or kubectl edit changes it", kinds.ServiceAccountOf(there), there.Name, difference)
		}
		return c.print(there, unchanged(c.dryRun))
	}
	if _, err := create(ctx, p, wanted, c.dryRun, &v1alpha1.PodIdentityAssociation{}); err != nil {
		return err
	}
	return c.print(wanted, made(c.dryRun))
}

// association is what the flags describe.
func (c *createPodIdentityCommand) association() (*v1alpha1.PodIdentityAssociation, error) {
	if err := checkCreate(c.dryRun, c.output); err != nil {
		return nil, err
	}
	switch {
	case len(validation.IsDNS1123Label(c.namespace)) > 0:
		return nil, terminal.UsageError{Err: fmt.Errorf("--namespace %q must be the name of a namespace", c.namespace)}
	case len(validation.IsDNS1123Subdomain(c.account)) > 0:
		return nil, terminal.UsageError{Err: fmt.Errorf("--service-account %q must be the name of a service account", c.account)}
	case !isRoleARN(c.role):
		return nil, terminal.UsageError{Err: fmt.Errorf("--role-arn %q must be the ARN of a role, such as arn:aws:iam::000000000000:role/app", c.role)}
	case c.target != "" && !isRoleARN(c.target):
		return nil, terminal.UsageError{Err: fmt.Errorf("--target-role-arn %q must be the ARN of a role, such as arn:aws:iam::000000000000:role/far", c.target)}
	case c.policyFile != "" && !c.noTags:
		return nil, terminal.UsageError{Err: errors.New("--policy-file needs --disable-session-tags")}
	}
	id, err := podidentity.NewID()
	if err != nil {
		return nil, err
	}
	wanted := &v1alpha1.PodIdentityAssociation{Spec: v1alpha1.PodIdentityAssociationSpec{
		Namespace: c.namespace, ServiceAccount: c.account, RoleARN: c.role, TargetRoleARN: c.target, DisableSessionTags: c.noTags,
	}}
	wanted.Name = id
	if c.policyFile != "" {
		raw, err := os.ReadFile(c.policyFile)
		if err != nil {
			return nil, fmt.Errorf("reading --policy-file: %w", err)
		}
		if _, err := iampolicy.Parse(iampolicy.Session, string(raw)); err != nil {
			return nil, fmt.Errorf("--policy-file %s: %w", c.policyFile, err)
		}
		wanted.Spec.Policy = strings.TrimSpace(string(raw))
	}
	return wanted, nil
}

func isRoleARN(text string) bool {
	a, err := arn.Parse(text)
	if err != nil {
		return false
	}
	_, _, ok := a.Role()
	return ok
}

// associationDifference is the setting in which an association that is there differs from one that is wanted; empty if
// none does.
func associationDifference(is, wanted *v1alpha1.PodIdentityAssociationSpec) string {
	for _, setting := range []struct{ name, is, wanted string }{
		{"roleARN", is.RoleARN, wanted.RoleARN},
		{"targetRoleARN", is.TargetRoleARN, wanted.TargetRoleARN},
		{"policy", is.Policy, wanted.Policy},
		{"disableSessionTags", fmt.Sprint(is.DisableSessionTags), fmt.Sprint(wanted.DisableSessionTags)},
	} {
		if setting.is != setting.wanted {
			return setting.name
		}
	}
	return ""
}

func (c *createPodIdentityCommand) print(wanted *v1alpha1.PodIdentityAssociation, did string) error {
	k := kinds.PodIdentityAssociations()
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

func (d *deleteCommand) podIdentityAssociations() *cobra.Command {
	cmd := d.finish(&cobra.Command{
		Use:     "podidentityassociation NAME...",
		Aliases: []string{"podidentityassociations", "pia"},
		Short:   "Take IAM roles from the pods of service accounts (EKS Pod Identity)",
		Long: `Delete pod identity associations, each named by its id or by its service account, NAMESPACE/NAME. Sessions that pods have by them
end within a second.`,
		Example: `  # By the service account
  muster delete podidentityassociation shop/app

  # By its id
  muster delete podidentityassociation a-0123456789abcdefg`,
	})
	kinds.AddClusterFlag(cmd, d.Options, d.planes, &d.cluster, "cluster of the associations (default: the only one there is)")
	return cmd
}
