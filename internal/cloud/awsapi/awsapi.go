// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/arczonalshift"
	"muster.dev/muster/internal/cloud/autoscaling"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/cloudwatchlogs"
	"muster.dev/muster/internal/cloud/ec2"
	"muster.dev/muster/internal/cloud/ec2/keypair"
	"muster.dev/muster/internal/cloud/ec2/routetable"
	"muster.dev/muster/internal/cloud/ecr"
	"muster.dev/muster/internal/cloud/eks"
	"muster.dev/muster/internal/cloud/eksauth"
	"muster.dev/muster/internal/cloud/elasticfilesystem"
	"muster.dev/muster/internal/cloud/elasticloadbalancing"
	"muster.dev/muster/internal/cloud/kms"
	"muster.dev/muster/internal/cloud/pricing"
	"muster.dev/muster/internal/cloud/scalingcontroller"
	"muster.dev/muster/internal/cloud/ssm"
	"muster.dev/muster/internal/cloud/tagging"
	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/iam/accesspolicy"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/image/registrystore"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/storage/filestore"
)

// Config is what the APIs need.
type Config struct {
	Identity *identityservice.Service
	// Management reads and writes the management plane. It may answer describing actions from memory, which has what
	// was written before.
	Management client.Client
	// PageKey is the file of the key that seals the tokens of lists. It is made if it is not there.
	PageKey string
	// StackKey is the file of the key that seals the secrets of stacks. It is made if it is not there.
	StackKey string
	Region   string
	// LocalMachines says whether this host can make machines of namespaces.
	LocalMachines bool
	// Unbuilt says what is to be done before a release of Kubernetes can run on this host; empty if nothing is.
	Unbuilt func(release.Release) string
	// Compute says why Karpenter cannot run in the control plane of a cluster with a spec and add-ons; empty if it can, or
	// is not asked for.
	Compute func(v1alpha1.ClusterSpec, []v1alpha1.Addon) string
	// UserData reads what a machine was launched with; machine.ErrNotFound if nothing.
	UserData func(id string) ([]byte, error)
	// Cluster makes a client of a cluster that is served, by its namespace.
	Cluster func(namespace string) (client.Client, error)
	// Pods knows which pods of the clusters have which identities.
	Pods Pods
	// Insights finds the insights about a cluster.
	Insights func(context.Context, *v1alpha1.Cluster) []insight.Insight
	// CheckVersion says what keeps a cluster from a release: a refusal, or insights with the status ERROR.
	CheckVersion func(context.Context, *v1alpha1.Cluster, release.Release) (refusal string, against []insight.Insight, err error)
	// Images is the directory of the image registry.
	Images string
	// FileSystems is the directory of the file systems.
	FileSystems string
	// Usage says of a VPC's subnets who has addresses of them.
	Usage func(vpc string) ([]machine.Usage, error)
	// HostRanges are the addresses of the host for load balancers, which are no VPC's.
	HostRanges func() ([]netip.Prefix, error)
	// Room is what the host offers local machines.
	Room *hostroom.Room
	// Queues is the directory of the messages of queues.
	Queues string
	// Logs is the account's log store; nil if there is none.
	Logs cloudwatchlogs.Logs
	// Run runs a function until the service ends.
	Run func(func(context.Context))
	Log *slog.Logger
}

// ec2 is what the actions of EC2 need.
func (c Config) ec2(account awsresource.Account) ec2.Config {
	return ec2.Config{
		Account: account, LocalMachines: c.LocalMachines, Unbuilt: c.Unbuilt, UserData: c.UserData, Usage: c.Usage, HostRanges: c.HostRanges, Room: c.Room, LaunchWait: launchWait,
	}
}

// AddControllers adds the controllers of what the APIs keep to a manager of the management plane: that of Auto Scaling groups, which launches
// instances as RunInstances does, that of clusters' log groups, and that of clusters' interruption queues.
func AddControllers(mgr manager.Manager, c Config, log *slog.Logger) error {
	sealing, err := pageKey(c.PageKey)
	if err != nil {
		return err
	}
	launcher, err := ec2.Launcher(c.ec2(awsresource.Account{Management: c.Management, Pages: nexttoken.NewSealer(sealing), Region: c.Region}))
	if err != nil {
		return err
	}
	if err := cloudwatchlogs.AddController(mgr, c.Management); err != nil {
		return err
	}
	if err := addInterruptions(mgr, c.Management, c.Region); err != nil {
		return err
	}
	return scalingcontroller.Add(mgr, scalingcontroller.Config{Management: c.Management, Launcher: launcher, Log: log})
}

// launchWait is many times what the launch of a machine takes until it has its address, on a host that is busy.
const launchWait = 5 * time.Second

// Register adds the actions of all services but STS and IAM to the account's front.
func Register(front *awsfront.Front, c Config) error {
	if c.Identity == nil {
		return errors.New("the AWS APIs need an identity service")
	}
	sealing, err := pageKey(c.PageKey)
	if err != nil {
		return err
	}
	var policies []string
	for _, p := range accesspolicy.Policies() {
		policies = append(policies, p.Name)
	}
	account := awsresource.Account{Management: awsresource.Allowed(c.Management), Pages: nexttoken.NewSealer(sealing), Region: c.Region, TagSources: &awsresource.TagSources{}}
	launcher, err := ec2.Register(front, c.ec2(account))
	if err != nil {
		return err
	}
	for _, register := range []func(*awsfront.Front, awsresource.Account) error{arczonalshift.Register, kms.Register, ssm.Register, pricing.Register, tagging.Register, elasticloadbalancing.Register} {
		if err := register(front, account); err != nil {
			return err
		}
	}
	if err := autoscaling.Register(front, account, launcher); err != nil {
		return err
	}
	key := kms.Check(c.Management, c.Region, time.Now)
	if err := cloudwatchlogs.Register(front, cloudwatchlogs.Config{Account: account, Key: key, Logs: c.Logs, Run: c.Run, Log: c.Log}); err != nil {
		return err
	}
	if err := ecr.Register(front, ecr.Config{Account: account, Store: registrystore.New(c.Images), Login: c.Identity.Login}); err != nil {
		return err
	}
	files := filestore.New(c.FileSystems)
	if err := elasticfilesystem.Register(front, elasticfilesystem.Config{
		Account: account, Used: func(ctx context.Context, id string) (int64, error) {
			used, err := files.Usage(ctx, filestore.Place{FileSystemID: id, Path: "/"})
			return used.Bytes, err
		},
	}); err != nil {
		return err
	}
	if err := registerEvents(front, account, c); err != nil {
		return err
	}
	if err := eks.Register(front, eks.Config{
		Account: account, LocalMachines: c.LocalMachines, Unbuilt: c.Unbuilt, Compute: c.Compute, Cluster: c.Cluster, Insights: c.Insights, CheckVersion: c.CheckVersion, Key: key, KeyPair: keypair.HasKeyPair(c.Management),
		Public:         routetable.Public(c.Management),
		AccessPolicies: policies, AccessPolicy: func(arn string) error { _, err := accesspolicy.Lookup(arn); return err },
	}); err != nil {
		return err
	}
	if err := registerStacks(front, account, c); err != nil {
		return err
	}
	return eksauth.Register(front, eksauth.Config{Region: c.Region, Account: c.Pods, Assume: assumeForPod(c.Identity, c.Pods)})
}
