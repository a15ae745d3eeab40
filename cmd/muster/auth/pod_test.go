// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/plane/podidentity"
)

func TestAuthPod(t *testing.T) {
	t.Parallel()
	const role = "arn:aws:iam::000000000000:role/app"
	ways := []podidentity.Way{
		{Way: podidentity.ByPodIdentity, Role: role, Why: "the role does not\ntrust", Fix: "change it"}, {Way: podidentity.ByNodeRole, Why: "closed"},
	}
	for name, c := range map[string]struct {
		says   podidentity.Explanation
		err    error
		args   []string
		status int // 2 for any other error
		want   []string
	}{
		"its role": {
			says: podidentity.Explanation{Namespace: "shop", Pod: "web", ServiceAccount: "app", Way: podidentity.ByPodIdentity, Role: role, Has: true, Ways: ways, Session: &podidentity.Given{ARN: "arn:aws:sts::x", Expires: time.Unix(0, 0)}},
			want: []string{"Pod shop/web of service account app has the role " + role + ", by: EKS Pod Identity.\n", "The session that it was given last is arn:aws:sts::x, until 19", "WAY", "closed", "change it"},
		},
		"refused":     {says: podidentity.Explanation{Namespace: "shop", Pod: "web", ServiceAccount: "app", Way: podidentity.ByPodIdentity, Ways: ways}, status: 1, want: []string{"gets no credentials: its environment leads to EKS Pod Identity, which fails."}},
		"nothing":     {says: podidentity.Explanation{Namespace: "shop", Pod: "web", ServiceAccount: "app", Ways: ways}, want: []string{"has no IAM identity."}},
		"a key":       {says: podidentity.Explanation{Way: podidentity.ByOwnKey, Has: true, Ways: ways}, want: []string{"has an access key of its own"}},
		"as data":     {says: podidentity.Explanation{Way: podidentity.ByPodIdentity, Role: role, Has: true, Ways: ways}, args: []string{"-o", "json"}, want: []string{`"way": "EKS Pod Identity"`, `"has": true`}},
		"not running": {err: controlsocket.ErrNotRunning, status: 2},
		"no such pod": {err: errors.New(`pods "web" not found`), status: 2},
	} {
		b := clitest.NewBench(t, interceptor.Funcs{})
		cmd := &podCommand{Options: b.O, ask: func(_ context.Context, _ *terminal.Options, namespace, pod string) (podidentity.Explanation, error) {
			if namespace != "shop" || pod != "web" {
				t.Errorf("asked for %s/%s", namespace, pod)
			}
			return c.says, c.err
		}}
		err := b.Run(t.Context(), cmd.command(), append([]string{"shop/web"}, c.args...)...)
		status := 0
		if exit, ok := errors.AsType[terminal.ExitStatus](err); ok {
			status = int(exit)
		} else if err != nil {
			status = 2
		}
		if status != c.status {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.want {
			if !strings.Contains(b.Out.String(), want) {
				t.Errorf("%s: no %q in:\n%s", name, want, b.Out.String())
			}
		}
	}
	for _, wrong := range []string{"web", "shop/", "/web", "a/b/c"} {
		b := clitest.NewBench(t, interceptor.Funcs{})
		cmd := &podCommand{Options: b.O, ask: func(context.Context, *terminal.Options, string, string) (podidentity.Explanation, error) {
			t.Error("asked")
			return podidentity.Explanation{}, nil
		}}
		if err := b.Run(t.Context(), cmd.command(), wrong); err == nil || !strings.Contains(err.Error(), "write NAMESPACE/POD") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
