// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// dockerHub is what docker's configuration calls docker.io.
const dockerHub = "https://index.docker.io/v1/"

// Password finds the user and password of a registry in the configuration of the docker command; both are empty if it
// has none. A password that is kept by a credential helper is an error: no program is run for it.
func Password(dockerConfig []byte, registry string) (user, password string, err error) {
	var config struct {
		Auths map[string]struct {
			Auth          string `json:"auth"`
			IdentityToken string `json:"identitytoken"`
		} `json:"auths"`
		CredsStore  string            `json:"credsStore"`
		CredHelpers map[string]string `json:"credHelpers"`
	}
	if json.Unmarshal(dockerConfig, &config) != nil { // its own words may repeat a password
		return "", "", errors.New("it is not the JSON of a docker configuration")
	}
	names := []string{registry, "https://" + registry, "https://" + registry + "/", "https://" + registry + "/v1/", "https://" + registry + "/v2/"}
	if registry == "docker.io" {
		names = append(names, dockerHub)
	}
	for _, name := range names {
		if helper := config.CredHelpers[name]; helper != "" {
			return "", "", fmt.Errorf("its password for %s is with the credential helper %.50q, which is not asked: log in with a configuration without one", registry, helper)
		}
	}
	for _, name := range names {
		entry, ok := config.Auths[name]
		switch {
		case !ok:
			continue
		case entry.Auth == "" && config.CredsStore != "":
			return "", "", fmt.Errorf("its password for %s is with the credential helper %.50q, which is not asked: log in with a configuration without one", registry, config.CredsStore)
		case entry.IdentityToken != "":
			return "", "", fmt.Errorf("it has an identity token for %s, which is not used: log in with a password or an access token", registry)
		}
		raw, err := base64.StdEncoding.DecodeString(strings.TrimRight(entry.Auth, "\x00"))
		user, password, ok := strings.Cut(string(raw), ":")
		if err != nil || !ok || user == "" || password == "" {
			return "", "", fmt.Errorf("its auth for %s is not the base64 of USER:PASSWORD", registry)
		}
		return user, password, nil
	}
	return "", "", nil
}
