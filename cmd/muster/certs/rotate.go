// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/rotation"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/plane/tokenkeys"
)

// Names of the authorities and keys that the command rotates.
const (
	kubeletAuthority = "kubelet-ca"
	tokenKeys        = "service-account-keys"
)

// rotatedLately is how long ago a rotation may have ended for another one not to be begun by mistake: a person who
// repeats a command that was interrupted wants to see its end, not a second rotation.
const rotatedLately = time.Hour

type rotateOptions struct {
	*terminal.Options
	noWait, again   bool
	timeout, notice time.Duration
	format          string
}

func newCertsRotateCommand(o *terminal.Options) *cobra.Command {
	r := &rotateOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "rotate " + kubeletAuthority + "|" + tokenKeys,
		Short: "Replace the authority of kubelets' certificates, or the key of service account tokens",
		Long: `kubelet-ca replaces the authority that signs kubelets' client and serving certificates, without a failed handshake:

  Trust     a new authority is made, and both are trusted; it waits until the API server has read that
  Replace   the new one signs; kubelets renew by themselves after 70 to 90 % of a certificate's life
  Withdraw  when no node has used the old one's certificates for six minutes, it is trusted no more

Once done, the old authority's key is destroyed. The service does the work: this command may be interrupted, and run again
it shows the rotation under way. Replacing takes as long as certificates live: spec.certificates of the Cluster says how
long that is. To be quicker, replace the machines: "muster delete machine".

service-account-keys replaces the key that signs service account tokens, without a restart or a refused token:

  Publish   a new key is in the issuer's documents for --notice; verifiers keep these for an hour
  Sign      the new key signs, and the private part of the old one is destroyed; tokens of both are good
  Withdraw  after 24 hours, a token's life, the old key leaves the documents; the API server trusts it for 90 days

It waits until the new key signs. Where somebody else serves the documents ("muster up --issuer-host"), copy them there during
the notice: "muster oidc jwks".`,
		Example: `  muster certs rotate kubelet-ca
  muster certs rotate kubelet-ca --no-wait
  muster certs rotate service-account-keys --no-wait
  muster status -o json | jq '.clusters[].kubeletAuthority'`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{kubeletAuthority, tokenKeys},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == tokenKeys {
				return r.runTokenKeys(cmd.Context())
			}
			if cmd.Flags().Changed("notice") {
				return terminal.UsageError{Err: errors.New("--notice is of " + tokenKeys + " alone")}
			}
			return r.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&r.noWait, "no-wait", false, "begin and return; the service goes on")
	flags.BoolVar(&r.again, "again", false, "begin even if another rotation ended less than an hour ago")
	flags.DurationVar(&r.notice, "notice", tokenkeys.Notice, "service-account-keys: how long the new key is published before it signs")
	flags.DurationVar(&r.timeout, "timeout", 0, "how long to wait for its end; 0: as long as it takes")
	terminal.AddOutputFlag(cmd, &r.format)
	return cmd
}

func (r *rotateOptions) run(ctx context.Context) error {
	dir, err := r.OpenExisting()
	if err != nil {
		return err
	}
	cluster, err := r.OpenCluster()
	if err != nil {
		return err
	}
	namespace := cluster.Namespace()
	service := controlsocket.NewClient(dir)
	before, err := service.Status(ctx)
	if errors.Is(err, controlsocket.ErrNotRunning) {
		return errors.New("the cluster is stopped, and its service does the rotation: run `muster up` first")
	}
	if err != nil {
		return err
	}
	was, _ := before.In(namespace)
	if k := was.Rotation; k != nil && k.Rotation == nil && k.Last != nil && time.Since(k.Last.Finished) < rotatedLately && !r.again {
		fmt.Fprintf(r.Err, "%s Nothing was begun; --again begins another one.\n", describeRotation(*k))
		return r.print(*k)
	}
	status, err := service.Rotate(ctx, namespace)
	if err != nil {
		return fmt.Errorf("asking the service to rotate: %w", err)
	}
	if !r.noWait {
		if status, err = r.wait(ctx, service, namespace, status); err != nil {
			return err
		}
	} else if r.format == terminal.FormatTable {
		fmt.Fprintln(r.Err, "The service goes on; `muster certs` shows how far it is.")
	}
	return r.print(status)
}

// wait shows each change until the rotation is over. A service that is started anew meanwhile does not end the waiting.
func (r *rotateOptions) wait(ctx context.Context, service *controlsocket.Client, namespace string, status servicestatus.Rotation) (servicestatus.Rotation, error) {
	if r.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.timeout, terminal.ErrTimeUp)
		defer cancel()
	}
	progress := terminal.NewWaitProgress(r.Err)
	defer progress.End()
	ticker := time.NewTicker(terminal.WaitInterval)
	defer ticker.Stop()
	for status.Rotation != nil {
		progress.Show(describeRotation(status))
		select {
		case <-ctx.Done():
			progress.End()
			const then = "the service goes on with it; run the command again to wait, or see `muster certs`"
			if errors.Is(context.Cause(ctx), terminal.ErrTimeUp) {
				return status, fmt.Errorf("the rotation is not complete after %s: %s", r.timeout, then)
			}
			return status, errors.New("interrupted: " + then)
		case <-ticker.C:
		}
		now, err := service.Status(ctx)
		if c, ok := now.In(namespace); err == nil && ok && c.Rotation != nil {
			status = *c.Rotation
		}
	}
	return status, nil
}

func (r *rotateOptions) print(status servicestatus.Rotation) error {
	if r.format != terminal.FormatTable {
		return terminal.PrintData(r.Out, r.format, status)
	}
	_, err := fmt.Fprintln(r.Out, describeRotation(status))
	return err
}

// describeRotation returns a sentence or two about the authority that signs for kubelets and the phase of a rotation.
func describeRotation(status servicestatus.Rotation) string {
	now := status.Rotation
	if now == nil {
		text := status.Signs + " signs kubelets' certificates, and is the only authority trusted for them."
		if last := status.Last; last != nil {
			text += fmt.Sprintf(" It replaced %s %s ago, in %s.", last.Old, duration.HumanDuration(time.Since(last.Finished)), duration.HumanDuration(last.Finished.Sub(last.Started)))
		}
		return text
	}
	var text string
	switch now.Phase {
	case rotation.Trust:
		text = fmt.Sprintf("%s: %s signs kubelets' certificates; %s are trusted", now.Phase, status.Signs, strings.Join(status.Trusts, " and "))
	case rotation.Replace:
		text = fmt.Sprintf("%s: %s signs kubelets' certificates; %s is trusted still", now.Phase, now.New, now.Old)
	default:
		text = fmt.Sprintf("%s: %s signs kubelets' certificates; %s is to be trusted no more", now.Phase, now.New, now.Old)
	}
	if status.Message != "" {
		text += ": " + status.Message
	}
	return text + "."
}
