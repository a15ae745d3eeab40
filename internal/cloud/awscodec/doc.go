// SPDX-License-Identifier: Apache-2.0

// Package awscodec finds the codec of a protocol of AWS's.
package awscodec

import (
	"muster.dev/muster/internal/cloud/awsshape"
	"muster.dev/muster/internal/cloud/restjson"
)

// For finds the codec of a service's protocol, or nil.
func For(protocol awsshape.Protocol) awsshape.Codec {
	switch protocol {
	case awsshape.RestJSON:
		return restjson.Codec{}
	default:
		return nil
	}
}
