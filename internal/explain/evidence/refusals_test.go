// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/platform/statedir"
)

// write writes a log.
func write(t *testing.T, path string, lines ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	h := HostLogs{Dir: statedir.Dir(t.TempDir()), Now: noon}
	const denied = `time=2026-11-20T11:59:%02d.000Z level=WARN msg="access denied" result=uknown_user status=403 client=127.0.0.1:1 took=1ms cached=false arn=arn:aws:sts::1:assumed-role/r/%s canonical_arn=arn:aws:iam::1:role/r account=1 principal_id=AROA access_key_id=ASIA%d rule=no-entry saw="no entry names it %d" fix="make one"`
	write(t, h.Dir.Cluster("home").Log("authenticator"),
		fmt.Sprintf(denied, 10, "anna", 1, 1), fmt.Sprintf(denied, 20, "anna", 2, 2), fmt.Sprintf(denied, 15, "bert", 3, 3),
		`time=2026-11-20T11:59:30.000Z level=INFO msg="access granted" arn=arn:aws:sts::1:assumed-role/r/anna`,
		`time=2026-11-20T11:59:31.000Z level=WARN msg="access denied" rule=expired claimed_access_key_id=AKIA1 saw="2026 msg=\"access granted\"" fix="set the clock"`,
		`time=2026-11-20T11:59:32.000Z level=WARN msg="another thing" saw="msg=\"access denied\" rule=no-entry"`,
		`time=2026-11-20T11:59:33.000Z level=WARN msg="access denied" instance=`+machine+` arn=arn:aws:sts::1:assumed-role/n/i rule=machine-cluster saw=x fix=y`,
	)
	const request = `time=2026-11-20T11:58:%02d.000Z level=INFO msg="%s request" api=%s action=%s outcome=%s principal=%s access_key_id=AKIA2 resource=%s source=172.31.0.9:%d request_id=1 took=1ms message="User: x is not authorized"`
	write(t, h.Dir.Log("serve"),
		fmt.Sprintf(request, 1, "identity", "sts", "AssumeRole", "AccessDenied", "arn:aws:iam::1:user/u", "arn:aws:iam::1:role/r", 1000),
		fmt.Sprintf(request, 2, "identity", "sts", "AssumeRole", "AccessDenied", "arn:aws:iam::1:user/u", "arn:aws:iam::1:role/r", 1001),
		fmt.Sprintf(request, 3, "aws", "ec2", "RunInstances", "UnauthorizedOperation", "arn:aws:iam::1:user/u", `""`, 1002),
		fmt.Sprintf(request, 4, "aws", "eks", "CreateCluster", "UnrecognizedClientException", `""`, `""`, 1003),
		fmt.Sprintf(request, 5, "identity", "iam", "GetRole", "NoSuchEntity", "arn:aws:iam::1:user/u", `""`, 1004),
		fmt.Sprintf(request, 6, "identity", "iam", "GetRole", "ok", "arn:aws:iam::1:user/u", `""`, 1005),
		`time=2026-11-20T11:58:07.000Z level=INFO msg="a part says" text="msg=\"iam request\" outcome=AccessDenied"`,
	)
	found, err := h.Refusals(t.Context(), []string{"home", "another"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range found {
		got = append(got, fmt.Sprint(r.Time.Format(time.TimeOnly), " ", r.Count, " ", r.By, r.Cluster, " ", r.Principal, " ", r.AccessKeyID, " ", r.Machine, r.Action, " ", r.Resource, " ", r.Rule, r.Cause, " ", r.Saw, "; ", r.Fix, " ", r.From))
	}
	want := []string{
		"11:59:33 1 authenticatorhome arn:aws:sts::1:assumed-role/n/i  " + machine + "  machine-clusterM-IAM-88 x; y ",
		`11:59:31 1 authenticatorhome  AKIA1   expiredM-IAM-08 2026 msg="access granted"; set the clock `,
		"11:59:20 2 authenticatorhome arn:aws:sts::1:assumed-role/r/anna ASIA2   no-entryM-IAM-01 no entry names it 2; make one ",
		"11:59:15 1 authenticatorhome arn:aws:sts::1:assumed-role/r/bert ASIA3   no-entryM-IAM-01 no entry names it 3; make one ",
		"11:58:04 1 eks  AKIA2 eks:CreateCluster  UnrecognizedClientException User: x is not authorized;  172.31.0.9",
		"11:58:03 1 ec2 arn:aws:iam::1:user/u AKIA2 ec2:RunInstances  UnauthorizedOperation User: x is not authorized;  172.31.0.9",
		"11:58:02 2 sts arn:aws:iam::1:user/u AKIA2 sts:AssumeRole arn:aws:iam::1:role/r AccessDenied User: x is not authorized;  172.31.0.9",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whoever has tokens refused by the thousand makes neither a long list nor long texts.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	h := HostLogs{Dir: statedir.Dir(t.TempDir()), Now: noon}
	lines := []string{`time=2026-11-20T11:00:00.000Z level=WARN msg="access denied" rule=expired claimed_access_key_id=FIRST saw=x fix=y`}
	for i := range 2 * keptRefusals {
		lines = append(lines, fmt.Sprintf(`time=2026-11-20T11:59:00.%03dZ level=WARN msg="access denied" rule=expired claimed_access_key_id=AKIA%d saw=%s fix=y`, i%1000, i, strings.Repeat("x", 2*keptBytes)))
	}
	write(t, h.Dir.Cluster("home").Log("authenticator"), lines...)
	found, err := h.Refusals(t.Context(), []string{"home"})
	if err != nil || len(found) != keptRefusals || found[0].AccessKeyID != "AKIA999" || len(found[0].Saw) > keptBytes+len("…") {
		t.Errorf("%d refusals, %v: %.200v", len(found), err, found[:min(len(found), 1)])
	}
	if found, err := h.Refusals(t.Context(), nil); err != nil || len(found) > 0 {
		t.Errorf("without logs: %v, %v", found, err)
	}
}
