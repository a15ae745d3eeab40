// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/iam/identityservice"
)

func TestCreateWithARole(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		provider, bootstrap, role string
		want                      v1alpha1.NodeGroupSpec
		says                      string
	}{
		"nothing said":           {"local", "", "", v1alpha1.NodeGroupSpec{}, ""},
		"a role":                 {"local", "", "team", v1alpha1.NodeGroupSpec{NodeRole: "team"}, ""},
		"a role, by role":        {"local", "role", "arn:aws:iam::000000000000:role/a/team", v1alpha1.NodeGroupSpec{NodeRole: "arn:aws:iam::000000000000:role/a/team", Bootstrap: "Role"}, ""},
		"by token":               {"local", "token", "", v1alpha1.NodeGroupSpec{Bootstrap: "Token"}, ""},
		"simulated, by token":    {"simulated", "token", "", v1alpha1.NodeGroupSpec{Bootstrap: "Token"}, ""},
		"in another way":         {"local", "magic", "", v1alpha1.NodeGroupSpec{}, `--bootstrap "magic" is not known; there are: role, token`},
		"a role, by token":       {"local", "token", "team", v1alpha1.NodeGroupSpec{}, "--node-role: machines that join by a bootstrap token have no role"},
		"simulated with a role":  {"simulated", "", "team", v1alpha1.NodeGroupSpec{}, "--node-role: "},
		"simulated, but by role": {"simulated", "role", "", v1alpha1.NodeGroupSpec{}, "--bootstrap role: simulated machines"},
	} {
		c := &createCommand{provider: test.provider, bootstrap: test.bootstrap, nodeRole: test.role, dryRun: "client", output: terminal.FormatName, nodes: 1, maximum: 1}
		group, err := c.group("g", true, true)
		if err != nil {
			if test.says == "" || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if test.says != "" || group.Spec.NodeRole != test.want.NodeRole || group.Spec.Bootstrap != test.want.Bootstrap {
			t.Errorf("%s: %+v", name, group.Spec)
		}
	}
}

// A role that is not there is told at once, and nothing is made.
func TestCreateWithARoleThatIsNotThere(t *testing.T) {
	t.Parallel()
	role := &v1alpha1.IAMRole{ObjectMeta: clitest.MadeBefore("r", time.Hour)}
	role.Spec.IAMName = v1alpha1.IAMName{Account: identityservice.DefaultAccount, Name: "team-nodes", Path: "/a/", ARN: "arn:aws:iam::000000000000:role/a/team-nodes"}
	other := &v1alpha1.IAMRole{ObjectMeta: clitest.MadeBefore("other", time.Hour)}
	other.Spec.IAMName = v1alpha1.IAMName{Account: "111122223333", Name: "theirs", Path: "/", ARN: "arn:aws:iam::111122223333:role/theirs"}
	for _, test := range []struct{ role, dryRun, says string }{
		{"", "none", ""},
		{"muster-node", "none", ""},
		{"muster-node-home", "none", ""}, // the cluster's own
		{"team-nodes", "none", ""},
		{"arn:aws:iam::000000000000:role/a/team-nodes", "none", ""},
		{"nope", "none", `--node-role: there is no IAM role "nope"; aws iam create-role makes one`},
		{"nope", "server", `--node-role: there is no IAM role "nope"; `},
		{"nope", "client", ""}, // it is for another time, or another cluster
		{"team-node", "none", `there is no IAM role "team-node"; did you mean "team-nodes"?; aws iam create-role`},
		{"arn:aws:iam::000000000000:role/team-nodes", "none", `there is no IAM role "arn:aws:iam::000000000000:role/team-nodes"; did you mean "arn:aws:iam::000000000000:role/a/team-nodes"?`},
		{"theirs", "none", `there is no IAM role "theirs"`},
	} {
		b := clitest.NewBench(t, interceptor.Funcs{}, append(clitest.World(), role, other)...)
		args := []string{"g", "--dry-run=" + test.dryRun}
		if test.role != "" {
			args = append(args, "--node-role", test.role)
		}
		err := b.Run(t.Context(), createOf(b), args...)
		if test.says == "" && err != nil {
			t.Errorf("%q: %v", test.role, err)
		}
		if test.says != "" {
			clitest.WantErr(t, err, test.says, false)
			if err := b.Client.Get(t.Context(), client.ObjectKey{Name: "g"}, &v1alpha1.NodeGroup{}); !apierrors.IsNotFound(err) || b.Out.Len() > 0 {
				t.Errorf("%q: a group was made: %v, %s", test.role, err, &b.Out)
			}
		}
	}
}
