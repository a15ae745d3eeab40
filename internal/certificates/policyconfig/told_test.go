// SPDX-License-Identifier: Apache-2.0

package policyconfig_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/certificates/policyconfig"
)

// The file has ten problems. The first is a value of the wrong type. Each problem is told with its line, and no problem
// that follows from another.
func TestAllProblemsAreTold(t *testing.T) {
	const file = `apiVersion: certificates.muster.dev/v1alpha1
kind: CertificateControllerConfiguration
workers: many
mode: sometimes
signers:
- {name: kubernetes.io/kubelet-serving, duration: 24, key: ca}
- {name: [kubernetes.io/kube-apiserver-client-kubelet], key: ca}
keys:
- name: ca
  file: /etc/muster/ca.crt
policy:
  maxFactAge: soon
  maxFactAgee: 2m
  reserved:
    addresses: [10.96.0.0/99, {a: b}]
  bootstrap:
    bindings: [{group: g}]
inventory:
  sources:
  - static: {file: machines.yaml}
pruning: {keep: 1.5}
mode: observe
`
	_, err := policyconfig.Read([]byte(file))
	if err == nil {
		t.Fatal("it was read")
	}
	want := []string{
		`line 3: workers: Invalid value: string: must be a whole number`,
		`line 6: signers[0].duration: Invalid value: number: must be text, in quotes if it looks like something else`,
		`line 7: signers[1].name: Invalid value: array: must be text, in quotes if it looks like something else`,
		`line 10: keys[0].file: Invalid value: string: must be an object with fields`,
		`line 12: policy.maxFactAge: Invalid value: "soon": must be a duration such as 168h or 90m`,
		`line 13: unknown field "policy.maxFactAgee"`,
		`line 15: policy.reserved.addresses[1]: Invalid value: object: must be text, in quotes if it looks like something else`,
		`line 15: policy.reserved.addresses[0]: Invalid value: "10.96.0.0/99": must be a network such as 10.96.0.0/12, or an address`,
		`line 17: policy.bootstrap.bindings[0]: Required value: say what the tokens are good for: nodeNames, machineGroups or both`,
		`line 20: inventory.sources[0].static.file: Invalid value: "machines.yaml": must be an absolute path`,
		`line 21: pruning.keep: Invalid value: number 1.5: must be a whole number`,
		`line 22: key "mode" already set in map`,
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// However many problems there are, their report can be read.
func TestManyProblems(t *testing.T) {
	_, err := policyconfig.Read([]byte(small + "workers: x\napprovalReasons:" + strings.Repeat("\n- {}", 10) + "\nkeys:" + strings.Repeat("\n- 1", 5000)))
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 101 || lines[100] != "and 4902 more" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}
