// SPDX-License-Identifier: Apache-2.0

package eksresource

import (
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

// TokenOf reads the client token of a request that makes one object.
func TokenOf(call *awsfront.Call, text string) (awsresource.Token, error) {
	return awsresource.TokenOf(call, text, "clientRequestToken")
}
