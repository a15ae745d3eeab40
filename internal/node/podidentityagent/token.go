// SPDX-License-Identifier: Apache-2.0

package podidentityagent

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

const (
	// audience is that of tokens for the agent.
	audience = "pods.eks.amazonaws.com"
	// maxToken is far more than a token of a service account has.
	maxToken = 8 << 10
)

// claims is what the agent looks at in a token. Nothing of it is proven: it serves to refuse early.
type claims struct {
	podUID  string
	expires time.Time
}

// readToken reads a token as far as it takes to refuse it. The errors are for the pod.
func readToken(token string) (claims, error) {
	switch {
	case token == "":
		return claims{}, errors.New("the header Authorization is missing: it must be the service account token of the pod, without a word before it")
	case len(token) > maxToken:
		return claims{}, errors.New("the service account token is too long")
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}, errors.New("the header Authorization is not a JSON Web Token")
	}
	for _, part := range parts {
		if raw, err := base64.RawURLEncoding.Strict().DecodeString(part); err != nil || len(raw) == 0 {
			return claims{}, errors.New("the header Authorization is not a JSON Web Token")
		}
	}
	body, err := base64.RawURLEncoding.Strict().DecodeString(parts[1])
	if err != nil {
		return claims{}, errors.New("the header Authorization is not a JSON Web Token")
	}
	var said struct {
		Audience   []string `json:"aud"`
		Expires    int64    `json:"exp"`
		Kubernetes struct {
			Pod struct {
				UID string `json:"uid"`
			} `json:"pod"`
		} `json:"kubernetes.io"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return claims{}, errors.New("the token is not one of a service account")
	}
	switch {
	case !slices.Contains(said.Audience, audience):
		return claims{}, errors.New("the token is for another audience: it must be for " + audience)
	case said.Kubernetes.Pod.UID == "":
		return claims{}, errors.New("the token is bound to no pod: mount it by a projected volume")
	}
	return claims{said.Kubernetes.Pod.UID, time.Unix(said.Expires, 0)}, nil
}
