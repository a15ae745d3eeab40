// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"muster.dev/muster/cmd/muster/terminal"
)

// A wrong number of arguments is one line that names the argument, and none of cobra's words.
func TestWrongNumbersOfArguments(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"status now":                 `"now" is one argument too many: muster status takes none; usage: muster status [flags]`,
		"certificate-controller now": `"now" is one argument too many: muster certificate-controller takes none; usage: muster certificate-controller --config FILE [flags]`,
		"create nodegroup":           `NAME is missing; usage: muster create nodegroup NAME [flags]`,
		"create cluster a b":         `"b" is one argument too many: muster create cluster takes NAME; usage: muster create cluster [NAME] [flags]`,
		"delete cluster":             `NAME is missing; usage: muster delete cluster NAME... [flags]`,
		"create nodegroup a b c":     `"b" is one argument too many: muster create nodegroup takes NAME; usage: muster create nodegroup NAME [flags]`,
		"scale nodegroup a 1 2":      `"2" is one argument too many: muster scale nodegroup takes NAME N; usage: muster scale nodegroup NAME [N] [flags]`,
		"upgrade cluster a b":        `"b" is one argument too many: muster upgrade cluster takes NAME; usage: muster upgrade cluster [NAME] [flags]`,
		"upgrade addon":              `NAME is missing; usage: muster upgrade addon NAME [flags]`,
		"delete machine":             `NAME is missing; usage: muster delete machine NAME... [flags]`,
		"exec":                       `MACHINE is missing; usage: muster exec MACHINE [-- COMMAND [ARG...]] [flags]`,
		"ssh":                        `MACHINE is missing; usage: muster ssh MACHINE [-- COMMAND [ARG...]] [flags]`,
		"join a:1 b:2":               `"b:2" is one argument too many: muster join takes HOST:PORT; usage: muster join [HOST:PORT] [flags]`,
		"logs etcd kubelet":          `"kubelet" is one argument too many: muster logs takes COMPONENT | MACHINE; usage: muster logs [COMPONENT | MACHINE] [flags]`,
		"token delete":               `ID|TOKEN is missing; usage: muster token delete ID|TOKEN... [flags]`,
		"certs rotate":               `kubelet-ca|service-account-keys is missing; usage: muster certs rotate kubelet-ca|service-account-keys [flags]`,
		"certs rotate etcd":          `invalid argument "etcd" for "muster certs rotate"; usage: muster certs rotate kubelet-ca|service-account-keys [flags]`,
		"certs rotate kubelet-ca x":  `"x" is one argument too many: muster certs rotate takes kubelet-ca|service-account-keys; usage: muster certs rotate kubelet-ca|service-account-keys [flags]`,
		"certs rotate etcd x":        `muster certs rotate takes kubelet-ca|service-account-keys; usage: muster certs rotate kubelet-ca|service-account-keys [flags]`,
		"staus":                      `unknown command "staus" for "muster"; did you mean "status"?; usage: muster [flags]`,
		"guardd":                     `unknown command "guardd" for "muster"; usage: muster [flags]`, // guard is hidden
		"auth chek":                  `there is no muster auth "chek"; did you mean "check"?; there are: check, pod; usage: muster auth [flags]`,
	} {
		var out, talk bytes.Buffer
		code := run(strings.Fields(line), terminal.Streams{Out: &out, Err: &talk})
		if code != 2 || talk.String() != "Error: "+want+"\n" || out.Len() > 0 {
			t.Errorf("muster %s: exit %d, printed %q, said\n%swant\n%s", line, code, &out, &talk, want)
		}
	}
}
