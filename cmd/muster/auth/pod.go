// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/platform/table"
	"muster.dev/muster/internal/platform/termsafe"
)

// podCommand is "muster auth pod".
type podCommand struct {
	*terminal.Options
	ask    func(ctx context.Context, o *terminal.Options, namespace, pod string) (podidentity.Explanation, error)
	output string
}

// askService asks the service of the state directory.
func askService(ctx context.Context, o *terminal.Options, namespace, pod string) (podidentity.Explanation, error) {
	dir, err := o.Open()
	if err != nil {
		return podidentity.Explanation{}, err
	}
	cluster := ""
	if o.Cluster != "" {
		cluster = v1alpha1.ClusterSlug(o.Cluster)
	}
	return controlsocket.NewClient(dir).PodIdentity(ctx, cluster, namespace, pod)
}

func (c *podCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pod NAMESPACE/POD",
		Short: "Show which IAM identity a pod has, by which way, and why not if it has none",
		Long: `Show which IAM identity a pod has, by which of the ways that AWS's SDKs take, and what is missing for each of them:

  IRSA                an annotation of the service account, and the role's trust in the cluster's OpenID Connect provider
  EKS Pod Identity    an association of the service account, and the role's trust in pods.eks.amazonaws.com
  role of the node    of instance metadata, which is closed to pods unless they have the host network, or the machine was
                      launched with httpPutResponseHopLimit 2 or more

The exit code is 0 if the pod gets credentials by the way that its SDKs take, or has no way to any; 1 if they fail.`,
		Example: `  # Who is that pod?
  muster auth pod shop/web-0

  # For a script: does it have a role, and until when?
  muster auth pod shop/web-0 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	terminal.AddFormatFlag(cmd, &c.output, terminal.FormatTable, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML)
	return cmd
}

func (c *podCommand) run(ctx context.Context, name string) error {
	if err := terminal.CheckOutput(c.output, terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML); err != nil {
		return err
	}
	namespace, pod, ok := strings.Cut(name, "/")
	if !ok || namespace == "" || pod == "" || strings.Contains(pod, "/") {
		return terminal.UsageError{Err: fmt.Errorf("invalid pod %q: write NAMESPACE/POD, such as default/web-0", name)}
	}
	e, err := c.ask(ctx, c.Options, namespace, pod)
	if errors.Is(err, controlsocket.ErrNotRunning) {
		return fmt.Errorf("%w: `muster up` starts it", err)
	}
	if err != nil {
		return err
	}
	if c.output != terminal.FormatTable {
		err = terminal.PrintData(c.Out, c.output, e)
	} else {
		err = c.print(e)
	}
	if err == nil && e.Way != "" && !e.Has {
		return terminal.ExitStatus(1)
	}
	return err
}

func (c *podCommand) print(e podidentity.Explanation) error {
	var b strings.Builder
	who := fmt.Sprintf("Pod %s/%s of service account %s", e.Namespace, e.Pod, e.ServiceAccount)
	switch {
	case e.Way == "":
		fmt.Fprintf(&b, "%s has no IAM identity.\n", who)
	case e.Way == podidentity.ByOwnKey:
		fmt.Fprintf(&b, "%s has an access key of its own in its environment, which comes before every other way.\n", who)
	case e.Has:
		fmt.Fprintf(&b, "%s has the role %s, by: %s.\n", who, e.Role, e.Way)
	default:
		fmt.Fprintf(&b, "%s gets no credentials: its environment leads to %s, which fails.\n", who, e.Way)
	}
	if e.Session != nil && e.Way == podidentity.ByPodIdentity {
		fmt.Fprintf(&b, "The session that it was given last is %s, until %s.\n", e.Session.ARN, e.Session.Expires.Local().Format(time.RFC3339))
	}
	if _, err := c.Out.Write([]byte(termsafe.Lines(b.String()))); err != nil {
		return err
	}
	fmt.Fprintln(c.Out)
	t := table.New(c.Out, "WAY", "WORKS", "ROLE", "WHY", "WHAT TO DO")
	for _, w := range e.Ways {
		works := "no"
		if w.Has {
			works = "yes"
		}
		t.Row(w.Way, works, terminal.OrDash(w.Role), termsafe.Line(w.Why), terminal.OrDash(termsafe.Line(w.Fix)))
	}
	return t.Flush()
}
