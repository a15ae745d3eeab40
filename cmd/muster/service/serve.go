// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/addons/addonfiles"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsapi"
	"muster.dev/muster/internal/cloud/ec2/routetable"
	"muster.dev/muster/internal/cluster/guard"
	"muster.dev/muster/internal/cluster/serve"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/machine/providerlist"
	"muster.dev/muster/internal/platform/programs"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/statedir"
)

// NewServeCommand returns "muster serve".
func NewServeCommand(o *terminal.Options) *cobra.Command {
	var guarded bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the service in the foreground: supervise all components and reconcile machines",
		Long: `Run the service in the foreground. It supervises all components and keeps the machines that node groups ask for.

When it ends, components and machines go on, and the next service takes them over as they are;
"muster down" stops everything. "muster up" runs it in the background.`,
		Example: `  # Run the service of the default state directory, for instance from a systemd unit
  muster serve`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := o.Open()
			if err != nil {
				return err
			}
			if !dir.Exists() {
				return errors.New("nothing is set up in " + string(dir) + " yet: run `muster up` once")
			}
			binDir, err := programs.Find(local.Possible())
			if err != nil {
				return err
			}
			log := newLogger(o)
			service, err := serve.NewService(serve.Config{
				State: dir, BinDir: binDir, Log: log, Guarded: guarded, Services: register(log), Public: routetable.Public,
				Controllers: func(mgr ctrlmanager.Manager, a serve.Account) error {
					c, err := apis(a, log)
					if err != nil {
						return err
					}
					return awsapi.AddControllers(mgr, c, log)
				},
			})
			if err != nil {
				return err
			}
			return service.Run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&guarded, "guarded", false, "keep a guard process that starts this service again when it dies")
	return cmd
}

// register returns what adds the AWS APIs of the account beside STS and IAM to its front.
func register(log *slog.Logger) func(*awsfront.Front, serve.Account) error {
	return func(front *awsfront.Front, a serve.Account) error { return registerAPIs(front, a, log) }
}

func registerAPIs(front *awsfront.Front, a serve.Account, log *slog.Logger) error {
	c, err := apis(a, log)
	if err != nil {
		return err
	}
	return awsapi.Register(front, c)
}

// apis is what the AWS APIs of an account need.
func apis(a serve.Account, log *slog.Logger) (awsapi.Config, error) {
	machines, err := providerlist.Store(a.Components) // only read
	if err != nil {
		return awsapi.Config{}, err
	}
	return awsapi.Config{
		Identity: a.Identity, Management: a.Management, PageKey: a.Components.State.PageKey(), StackKey: statedir.StackKey(a.Components.State),
		Region: a.Components.Region.Name, LocalMachines: a.Components.VPC,
		Unbuilt: func(of release.Release) string { return programs.Unbuilt(a.Components.BinDir, of) },
		Compute: func(wanted v1alpha1.ClusterSpec, addons []v1alpha1.Addon) string {
			err := cmp.Or(addonfiles.CheckCompute(wanted, a.Components.BinDir, a.Components.VPC), addonfiles.CheckComputeAlone(wanted, addons))
			if err != nil {
				return err.Error()
			}
			return ""
		},
		Cluster: a.Cluster, Pods: a.Pods, Insights: a.Insights, CheckVersion: a.CheckVersion, UserData: machines.UserData, Usage: machines.Usage, HostRanges: a.HostRanges, Room: a.Room, Images: a.Components.State.Registry(), FileSystems: a.Components.State.FileSystems(),
		Queues: statedir.Queues(a.Components.State), Logs: a.Logs, Log: log, Run: a.Run,
	}, nil
}

// NewGuardCommand returns the hidden command that keeps "muster serve" running.
func NewGuardCommand(o *terminal.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "guard",
		Short: "Keep the service running",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := o.Open()
			if err != nil {
				return err
			}
			binDir, err := programs.Find(local.Possible())
			if err != nil {
				return err
			}
			return guard.Run(cmd.Context(), dir, binDir, newLogger(o))
		},
	}
}

// newLogger writes structured lines to standard error.
func newLogger(o *terminal.Options) *slog.Logger {
	level := slog.LevelInfo
	if os.Getenv("MUSTER_DEBUG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(o.Err, &slog.HandlerOptions{Level: level}))
}
