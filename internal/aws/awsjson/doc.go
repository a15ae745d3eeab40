// SPDX-License-Identifier: Apache-2.0

// Package awsjson is the server's side of AWS's protocols awsJson1_0 and awsJson1_1, which SSM, KMS and CloudWatch Logs
// speak: a POST with the operation in the header X-Amz-Target, and JSON.
package awsjson
