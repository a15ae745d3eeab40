// SPDX-License-Identifier: Apache-2.0

// Package awscodec finds the codec of a protocol of AWS's.
package awscodec

import (
	"muster.dev/muster/internal/aws/awsjson"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/ec2query"
	"muster.dev/muster/internal/aws/query"
	"muster.dev/muster/internal/aws/restjson"
)

// For finds the codec of a service's protocol, or nil.
func For(protocol awsshape.Protocol) awsshape.Codec {
	switch protocol {
	case awsshape.RestJSON:
		return restjson.Codec{}
	case awsshape.JSON10:
		return awsjson.Codec{Version: "1.0"}
	case awsshape.JSON11:
		return awsjson.Codec{Version: "1.1"}
	case awsshape.QueryXML:
		return query.Codec{}
	case awsshape.EC2Query:
		return ec2query.Codec{}
	default:
		return nil
	}
}
