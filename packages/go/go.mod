module steadfast.test/clustertest

go 1.23
