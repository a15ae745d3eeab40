// SPDX-License-Identifier: Apache-2.0

// Package awscodec finds the codec of a service of AWS's.
package awscodec

import (
	"muster.dev/muster/internal/aws/awsjson"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/ec2query"
	"muster.dev/muster/internal/aws/query"
	"muster.dev/muster/internal/aws/restjson"
)

// For finds the codec of a service, or nil.
func For(service *awsshape.Service) awsshape.Codec {
	switch service.Protocol {
	case awsshape.RestJSON:
		return restjson.Codec{}
	case awsshape.JSON10:
		return awsjson.Codec{Version: "1.0"}
	case awsshape.JSON11:
		return awsjson.Codec{Version: "1.1"}
	case awsshape.QueryXML:
		if service.Identity {
			return query.Identity{}
		}
		return query.Codec{}
	case awsshape.EC2Query:
		return ec2query.Codec{}
	default:
		return nil
	}
}
