// SPDX-License-Identifier: Apache-2.0

// Package viewer has who looks at the console by an IAM identity, and what the console asks the account about them.
//
// A person proves the identity by a presigned GetCallerIdentity, as for a cluster, which is signed for an audience: the header x-k8s-aws-id
// that names a cluster in other tokens names one run of the console. An audience has a colon, which no cluster's name has, so neither's token
// is of use at the other.
package viewer

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/awsshape"
)

const audiencePrefix = "muster-console:"

// Audience is what tokens are signed for that are good at a console with an id.
func Audience(id string) string { return audiencePrefix + id }

// IsAudience reports whether a text is an audience, and no cluster's name.
func IsAudience(text string) bool {
	id, ok := strings.CutPrefix(text, audiencePrefix)
	return ok && id != ""
}

// Proof is a token with the audience that it has to be signed for.
type Proof struct {
	Audience string `json:"audience"`
	Token    string `json:"token"`
}

// Viewer is an IAM identity that has been proven. It signs nothing: the account looks up its key each time that it is asked, so that a key,
// a user or a session that ended has no rights.
type Viewer struct {
	ARN         string `json:"arn"`
	Account     string `json:"account"`
	UserID      string `json:"userID"`
	SessionName string `json:"sessionName,omitempty"`
	AccessKeyID string `json:"accessKeyID"`
	// SessionToken is that of temporary credentials; empty for a user's key.
	SessionToken string `json:"sessionToken,omitempty"`
	// Until is when the token ends that proved it, and nothing else.
	Until time.Time `json:"until"`
}

// String is the ARN.
func (v Viewer) String() string { return v.ARN }

// Question is one that IAM's policies answer.
type Question struct {
	Action   string `json:"action"`
	Resource string `json:"resource"`
}

// Decision asks for the answers of questions about a viewer.
type Decision struct {
	Viewer    Viewer     `json:"viewer"`
	Questions []Question `json:"questions"`
}

// Request is a request of EKS's API that a viewer makes.
type Request struct {
	Viewer Viewer          `json:"viewer"`
	Action string          `json:"action"`
	Input  json.RawMessage `json:"input"`
}

// Refusal is why the account refused something: the code and the message of its API; empty if it did not.
type Refusal struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Status  int    `json:"status,omitempty"`
}

// Object is the input as the API's handlers take it.
func (r Request) Object() (awsshape.Object, error) {
	decoder := json.NewDecoder(strings.NewReader(string(r.Input)))
	decoder.UseNumber()
	var raw map[string]any
	if err := decoder.Decode(&raw); err != nil {
		return nil, fmt.Errorf("reading the input of %s: %w", r.Action, err)
	}
	return object(raw)
}

func object(raw map[string]any) (awsshape.Object, error) {
	made := awsshape.Object{}
	for key, value := range raw {
		plain, err := plain(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		made[key] = plain
	}
	return made, nil
}

func plain(value any) (any, error) {
	switch value := value.(type) {
	case json.Number:
		n, err := value.Int64()
		if err != nil {
			return nil, fmt.Errorf("%s is not a whole number", value)
		}
		return n, nil
	case []any:
		for i := range value {
			var err error
			if value[i], err = plain(value[i]); err != nil {
				return nil, err
			}
		}
		return value, nil
	case map[string]any:
		return object(value)
	}
	return value, nil
}
