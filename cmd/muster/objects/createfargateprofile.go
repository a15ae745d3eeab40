// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cloud/eks/eksclient"
	"muster.dev/muster/internal/plane/readiness"
)

// fargateAPI is the part of EKS's API that Fargate profiles are asked of.
type fargateAPI interface {
	CreateFargateProfile(ctx context.Context, cluster string, p eksclient.FargateProfile) error
}

// fargateOf returns the EKS API of the account in the state directory.
func fargateOf(ctx context.Context, o *terminal.Options) (fargateAPI, error) {
	dir, err := o.OpenExisting()
	if err != nil {
		return nil, err
	}
	return eksclient.New(ctx, dir.IAMConfig(), dir.IAMCredentials())
}

// createFargateProfileCommand holds the flags of "muster create fargateprofile".
type createFargateProfileCommand struct {
	*terminal.Options
	planes   kinds.Dialers
	api      func(context.Context, *terminal.Options) (fargateAPI, error)
	interval time.Duration

	cluster, role      string
	selectors, subnets []string
	wait               bool
	timeout            time.Duration
}

func (c *createFargateProfileCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "fargateprofile NAME",
		Aliases: []string{"fargateprofiles", "fp"},
		Short:   "Give each of some pods a machine of its own",
		Long: `Give each pod that a selector selects a machine of its own, as EKS does on Fargate. The machine has the next larger of EKS's sizes for
what the pod requests, and goes with the pod. Pods that are there already stay where they are.

A selector is a namespace, and labels if some are named; * stands for any number of characters and ? for one. The pod execution role
must let eks-fargate-pods.amazonaws.com assume it. Subnets must have no route to an internet gateway.

Made again with the same settings it stays as it is. A profile cannot be changed: delete it, and make another.`,
		Example: `  # The pods of namespace batch
  muster create fargateprofile batch --selector namespace=batch --pod-execution-role-arn arn:aws:iam::000000000000:role/pods --wait

  # Those of all namespaces that begin with team-, if they have the label size=small, and all of namespace jobs
  muster create fargateprofile teams --selector 'namespace=team-*,size=small' --selector namespace=jobs \
    --pod-execution-role-arn arn:aws:iam::000000000000:role/pods`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	flags := cmd.Flags()
	kinds.AddClusterFlag(cmd, c.Options, c.planes, &c.cluster, "cluster of the pods (default: the only one there is)")
	flags.StringArrayVar(&c.selectors, "selector", nil, "pods, as in namespace=NAMESPACE,key=value; may be given five times")
	flags.StringVar(&c.role, "pod-execution-role-arn", "", "IAM role of the machines, by ARN")
	flags.StringSliceVar(&c.subnets, "subnets", nil, "private subnets of the machines (default: those of the cluster)")
	flags.BoolVar(&c.wait, "wait", false, "return when the profile selects pods")
	flags.DurationVar(&c.timeout, "timeout", 2*time.Minute, "how long to --wait")
	return cmd
}

func (c *createFargateProfileCommand) run(ctx context.Context, name string) error {
	asked := eksclient.FargateProfile{Name: name, RoleARN: c.role, Subnets: c.subnets}
	for _, text := range c.selectors {
		s, err := selectorFrom(text)
		if err != nil {
			return terminal.UsageError{Err: err}
		}
		asked.Selectors = append(asked.Selectors, s)
	}
	p, err := c.planes.Management(c.Options)
	if err != nil {
		return err
	}
	cluster, err := p.Cluster(ctx, c.cluster)
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: v1alpha1.ClusterSlug(cluster), Name: v1alpha1.FargateProfileSlug(name)}
	there, did := &v1alpha1.FargateProfile{}, "unchanged"
	switch err := p.ReadKey(ctx, key, there); {
	case apierrors.IsNotFound(err):
		did = "created"
		if err := c.create(ctx, cluster, asked); err != nil {
			return err
		}
	case err != nil:
		return err
	case there.DeletionTimestamp != nil:
		return fmt.Errorf("fargateprofile %q is being deleted: try again when it is gone", name)
	case !sameProfile(there, asked):
		return fmt.Errorf("fargateprofile %q exists with other settings, and cannot be changed: delete it, or choose another name", name)
	}
	if _, err := fmt.Fprintln(c.Out, kinds.FargateProfiles().Qualified(name), did); err != nil || !c.wait {
		return err
	}
	return c.waitUntilActive(ctx, p, key, name)
}

func (c *createFargateProfileCommand) create(ctx context.Context, cluster string, asked eksclient.FargateProfile) error {
	api, err := c.api(ctx, c.Options)
	if err != nil {
		return err
	}
	return api.CreateFargateProfile(ctx, cluster, asked)
}

// selectorFrom reads a selector: namespace=NAMESPACE, and labels.
func selectorFrom(text string) (eksclient.FargateSelector, error) {
	s := eksclient.FargateSelector{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		switch {
		case !ok || key == "":
			return s, fmt.Errorf("invalid --selector %q: must be namespace=NAMESPACE, and labels as in namespace=NAMESPACE,key=value", text)
		case key == "namespace":
			s.Namespace = value
		default:
			if s.Labels == nil {
				s.Labels = map[string]string{}
			}
			s.Labels[key] = value
		}
	}
	if s.Namespace == "" {
		return s, fmt.Errorf("invalid --selector %q: it has no namespace: write namespace=NAMESPACE, or namespace=* for all", text)
	}
	return s, nil
}

// sameProfile reports whether a profile has the settings that are asked for.
func sameProfile(there *v1alpha1.FargateProfile, asked eksclient.FargateProfile) bool {
	is := eksclient.FargateProfile{Name: there.Spec.Name, RoleARN: there.Spec.PodExecutionRoleARN}
	for _, id := range there.Spec.SubnetIDs {
		is.Subnets = append(is.Subnets, string(id))
	}
	for _, s := range there.Spec.Selectors {
		one := eksclient.FargateSelector{Namespace: s.Namespace}
		for key, value := range s.Labels {
			if one.Labels == nil {
				one.Labels = map[string]string{}
			}
			one.Labels[key] = string(value)
		}
		is.Selectors = append(is.Selectors, one)
	}
	return reflect.DeepEqual(is, asked)
}

func (c *createFargateProfileCommand) waitUntilActive(ctx context.Context, p *kinds.Client, key client.ObjectKey, name string) error {
	why := "nobody has looked at it yet"
	err := terminal.Poll(ctx, c.timeout, c.interval, func(ctx context.Context) (bool, error) {
		var now v1alpha1.FargateProfile
		if err := p.ReadKey(ctx, key, &now); err != nil {
			return false, err
		}
		why = terminal.Or(readiness.Message(now.Status.Conditions), why)
		return meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionReady), nil
	})
	if errors.Is(err, terminal.ErrTimeUp) {
		return fmt.Errorf("fargateprofile %q: %s: %w", name, why, err)
	}
	return err
}

func (d *deleteCommand) fargateProfiles() *cobra.Command {
	cmd := d.finish(&cobra.Command{
		Use:     "fargateprofile NAME...",
		Aliases: []string{"fargateprofiles", "fp"},
		Short:   "Delete Fargate profiles with all their pods",
		Long: `Delete Fargate profiles. Pods that have a machine by one are deleted, with the time that they ask for, and their machines with them.
Pods that take their place go to other nodes, unless another profile selects them.`,
		Example: `  # Return when its last pod and machine are gone
  muster delete fargateprofile batch`,
	})
	kinds.AddClusterFlag(cmd, d.Options, d.planes, &d.cluster, "cluster of the profiles (default: the only one there is)")
	return cmd
}
