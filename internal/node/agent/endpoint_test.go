// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/node/nodeconfig"
)

// leaves are instance metadata by path; an error is answered to everything.
type leaves struct {
	all map[string]string
	err error
}

func (l leaves) Metadata(_ context.Context, path string) (string, error) {
	if l.err != nil {
		return "", l.err
	}
	if leaf, ok := l.all[path]; ok {
		return leaf, nil
	}
	return "", imds.ErrNotFound
}

func TestReachable(t *testing.T) {
	t.Parallel()
	here := leaves{all: map[string]string{"muster/api-servers/127.0.0.1/6443": "https://172.31.0.4:443"}}
	for name, tt := range map[string]struct {
		endpoint string
		machine  leaves
		want     string
		err      string
	}{
		"the host's":           {endpoint: "https://127.0.0.1:6443", machine: here, want: "https://172.31.0.4:443"},
		"the VPC's":            {endpoint: "https://172.31.0.4:443", machine: leaves{err: errors.New("asked")}, want: "https://172.31.0.4:443"},
		"a name":               {endpoint: "https://blue.example.com", machine: leaves{err: errors.New("asked")}, want: "https://blue.example.com"},
		"none":                 {machine: leaves{err: errors.New("asked")}},
		"of another port":      {endpoint: "https://127.0.0.1:6444", machine: here, want: "https://127.0.0.1:6444"},
		"of the machine's own": {endpoint: "https://[::1]:6443", machine: here, want: "https://[::1]:6443"},
		"not HTTPS":            {endpoint: "http://127.0.0.1:6443", machine: here, want: "http://127.0.0.1:6443"},
		"nobody answers": {
			endpoint: "https://127.0.0.1:6443", machine: leaves{err: errors.New("timed out")}, want: "https://127.0.0.1:6443",
			err: "spec.cluster.apiServerEndpoint: https://127.0.0.1:6443 is on a loopback address: asking for that of this VPC: timed out",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said []string
			got, err := reachable(t.Context(), nodeconfig.Spec{Cluster: nodeconfig.Cluster{APIServerEndpoint: tt.endpoint}}, tt.machine, func(text string) { said = append(said, text) })
			if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			if got.Cluster.APIServerEndpoint != tt.want {
				t.Errorf("%q, want %q", got.Cluster.APIServerEndpoint, tt.want)
			}
			if changed := tt.want != tt.endpoint; changed != (len(said) == 1) {
				t.Errorf("said %s", strings.Join(said, "; "))
			}
		})
	}
}
