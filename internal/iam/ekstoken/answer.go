// SPDX-License-Identifier: Apache-2.0

package ekstoken

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// InfoVariable is the environment variable in which clients say what they expect of a credential plugin.
const InfoVariable = "KUBERNETES_EXEC_INFO"

// The versions of the interface between clients and credential plugins.
const (
	V1      = "client.authentication.k8s.io/v1"
	V1Beta1 = "client.authentication.k8s.io/v1beta1"
)

// maxInfo is far more than a client says: with provideClusterInfo the cluster's authorities are in it.
const maxInfo = 1 << 20

// Version reads which version the client wants. A client that says nothing is a person, or older than the variable: it
// gets v1beta1, as from aws-iam-authenticator.
func Version(info string) (string, error) {
	if info == "" {
		return V1Beta1, nil
	}
	if len(info) > maxInfo {
		return "", fmt.Errorf("%s has more than %d bytes", InfoVariable, maxInfo)
	}
	var asked struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal([]byte(info), &asked); err != nil {
		return "", errors.New(InfoVariable + " is not JSON: it is for kubectl to set, not for people")
	}
	switch {
	case asked.Kind != "" && asked.Kind != "ExecCredential":
		return "", fmt.Errorf("%s is a %.64q, not an ExecCredential", InfoVariable, asked.Kind)
	case asked.APIVersion == V1 || asked.APIVersion == V1Beta1:
		return asked.APIVersion, nil
	}
	return "", fmt.Errorf("the client asks for %.64q: write %s, or %s, as apiVersion of exec in the kubeconfig", asked.APIVersion, V1, V1Beta1)
}

// Answer is what a credential plugin says.
func Answer(version string, t Token) ([]byte, error) {
	type spec struct {
		Interactive bool `json:"interactive"`
	}
	type status struct {
		ExpirationTimestamp string `json:"expirationTimestamp"`
		Token               string `json:"token"`
	}
	raw, err := json.Marshal(struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Spec       spec   `json:"spec"`
		Status     status `json:"status"`
	}{"ExecCredential", version, spec{}, status{t.Expires.UTC().Format(time.RFC3339), t.Reveal()}})
	if err != nil {
		return nil, fmt.Errorf("writing the credential: %w", err)
	}
	return append(raw, '\n'), nil
}
