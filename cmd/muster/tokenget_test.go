// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestNameOfIAMAuthenticator(t *testing.T) {
	for name, want := range map[string]bool{
		"/usr/bin/aws-iam-authenticator": true, "aws-iam-authenticator": true, "/etc/eks/aws-iam-authenticator": true,
		"muster": false, "/usr/bin/muster": false, "aws-iam-authenticator.exe": false, "": false,
	} {
		if got := calledIAMAuthenticator(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestEnvironmentHasIdentity(t *testing.T) {
	for variable, want := range map[string]bool{
		"AWS_ACCESS_KEY_ID=a": true, "AWS_PROFILE=a": true, "AWS_CONFIG_FILE=/a": true,
		"AWS_PROFILE=": false, "AWS_REGION=a": false, "XAWS_PROFILE=a": false, "AWS_PROFILES=a": false,
	} {
		if got := environmentHasIdentity([]string{"TERM=x", variable}); got != want {
			t.Errorf("%s: %v", variable, got)
		}
	}
}

func TestContextByIAM(t *testing.T) {
	from := clientcmdapi.NewConfig()
	from.CurrentContext = "lab"
	from.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "lab"}
	from.Clusters["lab"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1", CertificateAuthorityData: []byte("ca")}
	from.AuthInfos["lab"] = &clientcmdapi.AuthInfo{ClientKeyData: []byte("key")}
	got, err := withIAM(from, "/opt/muster", "/var/lib/muster", "arn:aws:iam::000000000000:role/r")
	if err != nil {
		t.Fatal(err)
	}
	user := got.AuthInfos["lab-iam"]
	if len(got.AuthInfos) != 1 || len(user.ClientKeyData) > 0 || got.CurrentContext != "lab-iam" || got.Clusters["lab-iam"].Server != "https://127.0.0.1:1" {
		t.Errorf("%+v", got)
	}
	want := []string{"token", "get", "--state-dir", "/var/lib/muster", "--cluster", "lab", "--role-arn", "arn:aws:iam::000000000000:role/r", "--cache"}
	if diff := cmp.Diff(want, user.Exec.Args); diff != "" || user.Exec.Command != "/opt/muster" || user.Exec.APIVersion != "client.authentication.k8s.io/v1" {
		t.Errorf("%+v (-want +got):\n%s", user.Exec, diff)
	}
	from.CurrentContext = "gone"
	if _, err := withIAM(from, "/opt/muster", "/var/lib/muster", ""); err == nil {
		t.Error("a context that is not there was used")
	}
}
