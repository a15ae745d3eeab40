module muster.dev/muster/test/awssdk

go 1.26.0

require (
	github.com/aws/aws-sdk-go-v2 v1.47.7
	github.com/aws/aws-sdk-go-v2/service/eks v1.105.4
	github.com/aws/smithy-go v1.28.8
	github.com/google/go-cmp v0.7.0
	muster.dev/muster v0.0.0
)

require (
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.5.10 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.8.10 // indirect
)

replace muster.dev/muster => ../..
