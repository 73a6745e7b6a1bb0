<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>Words</name>
    <message>
        <source>The run was not told: %1</source>
        <translation>未能通知该运行：%1</translation>
    </message>
    <message>
        <source>Of</source>
        <translation>属于</translation>
    </message>
    <message>
        <source>Token id</source>
        <translation>token 编号</translation>
    </message>
    <message>
        <source>Log-probability</source>
        <translation>对数概率</translation>
    </message>
    <message>
        <source>Probability</source>
        <translation>概率</translation>
    </message>
    <message>
        <source>Mean log-prob.</source>
        <translation>平均对数概率</translation>
    </message>
    <message>
        <source>Tokens of the sample</source>
        <translation>样本的 token</translation>
    </message>
    <message>
        <source>&lt;b&gt;Tokens&lt;/b&gt;</source>
        <translation>&lt;b&gt;Token&lt;/b&gt;</translation>
    </message>
    <message>
        <source>A file of prompts is missing.</source>
        <translation>缺少提示文件。</translation>
    </message>
    <message>
        <source>%1: no such file</source>
        <translation>%1：没有这个文件</translation>
    </message>
    <message>
        <source>Learning rate</source>
        <translation>学习率</translation>
    </message>
    <message>
        <source>Critic's learning rate</source>
        <translation>critic 的学习率</translation>
    </message>
    <message>
        <source>Steps of the run</source>
        <translation>运行步数</translation>
    </message>
    <message>
        <source>Steps between checkpoints</source>
        <translation>检查点间隔步数</translation>
    </message>
    <message>
        <source>Write a run file</source>
        <translation>编写运行文件</translation>
    </message>
    <message>
        <source>File of prompts</source>
        <translation>提示文件</translation>
    </message>
    <message>
        <source>JSON lines or Parquet, with verl's fields</source>
        <translation>JSON lines 或 Parquet，字段同 verl</translation>
    </message>
    <message>
        <source>Rule of the reward</source>
        <translation>奖励规则</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>The run file</source>
        <translation>运行文件内容</translation>
    </message>
    <message>
        <source>What the run file lacks</source>
        <translation>运行文件缺少什么</translation>
    </message>
    <message>
        <source>&amp;Prompts</source>
        <translation>提示(&amp;P)</translation>
    </message>
    <message>
        <source>&amp;Reward</source>
        <translation>奖励(&amp;R)</translation>
    </message>
    <message>
        <source>&amp;Learning rate</source>
        <translation>学习率(&amp;L)</translation>
    </message>
    <message>
        <source>&amp;Critic's learning rate</source>
        <translation>critic 的学习率(&amp;C)</translation>
    </message>
    <message>
        <source>S&amp;teps</source>
        <translation>步数(&amp;T)</translation>
    </message>
    <message>
        <source>Steps between c&amp;heckpoints</source>
        <translation>检查点间隔步数(&amp;H)</translation>
    </message>
    <message>
        <source>&amp;Save...</source>
        <translation>保存(&amp;S)...</translation>
    </message>
    <message>
        <source>Choose a file of prompts</source>
        <translation>选择提示文件</translation>
    </message>
    <message>
        <source>Prompts (*.jsonl *.json *.parquet);;All files (*)</source>
        <translation>提示文件 (*.jsonl *.json *.parquet);;所有文件 (*)</translation>
    </message>
    <message>
        <source>A learning rate is a number from 0 to 1.</source>
        <translation>学习率须是 0 到 1 之间的数。</translation>
    </message>
    <message>
        <source>Save the run file</source>
        <translation>保存运行文件</translation>
    </message>
    <message>
        <source>&amp;Write one...</source>
        <translation>编写(&amp;W)...</translation>
    </message>
    <message>
        <source>Steps are shown of plans that use one node.</source>
        <translation>仅当方案只用一个节点时才显示步骤。</translation>
    </message>
    <message>
        <source>Processors read one another's memory all at once, without steps.</source>
        <translation>处理器之间一次性读取彼此内存，不分步骤。</translation>
    </message>
    <message>
        <source>This transport has no steps: they are of reads by copy engines.</source>
        <translation>此传输方式没有步骤：只有复制引擎的读取才分步骤。</translation>
    </message>
    <message>
        <source>Steps are shown of a reshard that is minimal and has no buckets.</source>
        <translation>仅当重分片为最小量且不分桶时才显示步骤。</translation>
    </message>
    <message>
        <source>step %1 of %2, at most %3 a rank</source>
        <translation>第 %1 步，共 %2 步，每个 rank 至多 %3</translation>
    </message>
    <message>
        <source>Put %1 (verl's keys; what the plan does not fix) beside the plan; tessera-run must be on PATH of every node.</source>
        <translation>把 %1（verl 的键；方案未固定的部分）放在方案旁边；每个节点的 PATH 中都要有 tessera-run。</translation>
    </message>
    <message>
        <source>With trainer.save_freq and trainer.resume_mode: auto in it a job that is started again, after a failure, an eviction or its time limit, goes on from its newest checkpoint.</source>
        <translation>其中若有 trainer.save_freq 与 trainer.resume_mode: auto，作业在故障、被驱逐或到达时限后再次启动时，会从最新的检查点继续。</translation>
    </message>
    <message>
        <source>Before: %1, and a PersistentVolumeClaim %2-runs that several nodes may write (ReadWriteMany); %3 can lie on it, too, under %4.</source>
        <translation>事先：%1，以及多个节点可写 (ReadWriteMany) 的 PersistentVolumeClaim %2-runs；%3 也可以放在它上面，位于 %4 之下。</translation>
    </message>
    <message>
        <source>Before: %1, and a PersistentVolumeClaim %2-runs; %3 can lie on it, too, under %4.</source>
        <translation>事先：%1，以及 PersistentVolumeClaim %2-runs；%3 也可以放在它上面，位于 %4 之下。</translation>
    </message>
    <message>
        <source>models and data that run.yaml names</source>
        <translation>run.yaml 所指的模型和数据</translation>
    </message>
    <message>
        <source>models and data</source>
        <translation>模型和数据</translation>
    </message>
    <message>
        <source>Several nodes: give %1 the cluster's RDMA resource (its name depends on the device plugin: rdma/hca_shared_devices_a, say) beside nvidia.com/gpu, or NCCL falls back to TCP; and let the scheduler start all pods or none (the runtime's podGroupPolicy).</source>
        <translation>多个节点：除 nvidia.com/gpu 外还要给%1集群的 RDMA 资源（名称取决于设备插件，例如 rdma/hca_shared_devices_a），否则 NCCL 会退回 TCP；并让调度器要么启动全部 pod，要么一个也不启动（运行时的 podGroupPolicy）。</translation>
    </message>
    <message>
        <source>Several nodes: give %1 the cluster's RDMA resource (its name depends on the device plugin: rdma/hca_shared_devices_a, say) beside nvidia.com/gpu, or NCCL falls back to TCP.</source>
        <translation>多个节点：除 nvidia.com/gpu 外还要给%1集群的 RDMA 资源（名称取决于设备插件，例如 rdma/hca_shared_devices_a），否则 NCCL 会退回 TCP。</translation>
    </message>
    <message>
        <source>the job</source>
        <translation>该作业</translation>
    </message>
    <message>
        <source>the pods</source>
        <translation>这些 pod</translation>
    </message>
    <message>
        <source>Several nodes: set NCCL_SOCKET_IFNAME (and GLOO_SOCKET_IFNAME) where hosts have interfaces that do not reach each other (docker0, say), and NCCL_IB_HCA where some adapters are not for this traffic; on RoCE NCCL_IB_TC and NCCL_IB_GID_INDEX are the fabric's. Look for NET/IB in the log of NCCL_DEBUG=INFO once: NET/Socket is TCP.</source>
        <translation>多个节点：主机上有彼此不通的接口（例如 docker0）时，请设置 NCCL_SOCKET_IFNAME（以及 GLOO_SOCKET_IFNAME）；有些网卡不用于这种流量时，请设置 NCCL_IB_HCA；在 RoCE 上，NCCL_IB_TC 与 NCCL_IB_GID_INDEX 由网络决定。请用 NCCL_DEBUG=INFO 在日志中查看一次 NET/IB：NET/Socket 就是 TCP。</translation>
    </message>
    <message>
        <source>Several nodes: set NCCL_SOCKET_IFNAME (and GLOO_SOCKET_IFNAME) where hosts have interfaces that do not reach each other (docker0, say), and NCCL_IB_HCA where some adapters are not for this traffic. Look for NET/IB in the log of NCCL_DEBUG=INFO once: NET/Socket is TCP.</source>
        <translation>多个节点：主机上有彼此不通的接口（例如 docker0）时，请设置 NCCL_SOCKET_IFNAME（以及 GLOO_SOCKET_IFNAME）；有些网卡不用于这种流量时，请设置 NCCL_IB_HCA。请用 NCCL_DEBUG=INFO 在日志中查看一次 NET/IB：NET/Socket 就是 TCP。</translation>
    </message>
    <message>
        <source>The plan is for several GPU types: %1; %2</source>
        <translation>方案使用多种 GPU 类型：%1；%2</translation>
    </message>
    <message>
        <source>Slurm hands out nodes in its own order: ask for each type by --constraint or --gres, and name the hosts in this order (SLURM_HOSTFILE with srun --distribution=arbitrary): %1.</source>
        <translation>Slurm 按自己的顺序分配节点：请用 --constraint 或 --gres 申请每种类型，并按此顺序列出主机（SLURM_HOSTFILE 配合 srun --distribution=arbitrary）：%1。</translation>
    </message>
    <message>
        <source>start node ranks in this order: %1.</source>
        <translation>请按此顺序启动各节点：%1。</translation>
    </message>
    <message>
        <source>give the job a nodeSelector for %1.</source>
        <translation>请给作业加上选择 %1 的 nodeSelector。</translation>
    </message>
    <message>
        <source>start these on nodes of their type.</source>
        <translation>请在相应类型的节点上启动。</translation>
    </message>
    <message>
        <source>The plan has %1 servers of %2 GPUs; start serve.sh once for each, with its own port and CUDA_VISIBLE_DEVICES. Experts lie over tensor x data parallel ranks of one server.</source>
        <translation>方案有 %1 个服务，每个 %2 张 GPU；请为每个服务各启动一次 serve.sh，端口和 CUDA_VISIBLE_DEVICES 各不相同。专家分布在一个服务的 tensor x data 并行 rank 上。</translation>
    </message>
    <message>
        <source>The plan has %1 servers of %2 GPUs; start serve.sh once for each, with its own port and CUDA_VISIBLE_DEVICES.</source>
        <translation>方案有 %1 个服务，每个 %2 张 GPU；请为每个服务各启动一次 serve.sh，端口和 CUDA_VISIBLE_DEVICES 各不相同。</translation>
    </message>
    <message>
        <source>A server spans %1 nodes: start serve.sh on each with --nnodes %2 --node-rank 0 (1, ...) --dist-init-addr FIRST_NODE:PORT.</source>
        <translation>一个服务跨 %1 个节点：请在每个节点上以 --nnodes %2 --node-rank 0 (1, ...) --dist-init-addr FIRST_NODE:PORT 启动 serve.sh。</translation>
    </message>
    <message>
        <source>A server spans %1 nodes: start serve.sh on the first with --data-parallel-size-local %2 --data-parallel-address FIRST_NODE --data-parallel-rpc-port PORT, and on the others with the same, --headless and --data-parallel-start-rank.</source>
        <translation>一个服务跨 %1 个节点：请在第一个节点上以 --data-parallel-size-local %2 --data-parallel-address FIRST_NODE --data-parallel-rpc-port PORT 启动 serve.sh，其他节点用相同参数，再加 --headless 和 --data-parallel-start-rank。</translation>
    </message>
    <message>
        <source>A server spans %1 nodes: start Ray on them and add --distributed-executor-backend ray.</source>
        <translation>一个服务跨 %1 个节点：请在这些节点上启动 Ray，并加上 --distributed-executor-backend ray。</translation>
    </message>
    <message>
        <source>Megatron-LM counts micro-batches in sequences: %1 of up to %2 tokens stand for the %3's limit of %4 tokens.</source>
        <translation>Megatron-LM 按序列计微批：%1 条、每条至多 %2 个 token，对应 %3 的 %4 个 token 上限。</translation>
    </message>
    <message>
        <source>Megatron-LM trains one model: the rollout, the reshard and the other roles are the caller's. Its ranks are in the order tp, cp, ep, dp, pp.</source>
        <translation>Megatron-LM 只训练一个模型：rollout、重分片和其他角色由调用方负责。它的 rank 顺序是 tp、cp、ep、dp、pp。</translation>
    </message>
    <message>
        <source>Set the environment variable %1 to %2 (%3): the plan does not know it. submit.sh stops with this sentence where it is missing.</source>
        <translation>请把环境变量 %1 设为%2（%3）：方案不知道它。缺少时 submit.sh 会以这句话停止。</translation>
    </message>
    <message>
        <source>Set the environment variable %1 to %2 (%3): the plan does not know it. run.sh stops with this sentence where it is missing; verl.yaml reads it too.</source>
        <translation>请把环境变量 %1 设为%2（%3）：方案不知道它。缺少时 run.sh 会以这句话停止；verl.yaml 也会读取它。</translation>
    </message>
    <message>
        <source>Set the environment variable %1 to %2 (%3): the plan does not know it. run.sh stops with this sentence where it is missing.</source>
        <translation>请把环境变量 %1 设为%2（%3）：方案不知道它。缺少时 run.sh 会以这句话停止。</translation>
    </message>
    <message>
        <source>the parquet file of the prompts, or [several]</source>
        <translation>提示的 parquet 文件，或 [多个]</translation>
    </message>
    <message>
        <source>the parquet file of the prompts for validation</source>
        <translation>验证用提示的 parquet 文件</translation>
    </message>
    <message>
        <source>a folder with the weights of %1 that is prepared for verl: `%2` makes it</source>
        <translation>为 verl 准备好的、含有 %1 权重的目录：由 `%2` 生成</translation>
    </message>
    <message>
        <source>a folder with the weights of %1, or its name on the Hugging Face hub</source>
        <translation>含有 %1 权重的目录，或它在 Hugging Face hub 上的名称</translation>
    </message>
    <message>
        <source>the model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>the critic</source>
        <translation>critic</translation>
    </message>
    <message>
        <source>The model's published weights are quantized, and verl's own example for it (DeepSeek-V3) removes quantization_config from config.json and disables multi-token prediction: %1 makes such a folder; every node reads it.</source>
        <translation>该模型公布的权重是量化的，verl 自己的示例 (DeepSeek-V3) 从 config.json 中去掉 quantization_config 并关闭多 token 预测：%1 会生成这样的目录；每个节点都要读取它。</translation>
    </message>
    <message>
        <source>Start Ray on every node before: `ray start --head` on the first, `ray start --address=HOST:6379` on the others. Ray's dashboard has no password: keep it on a trusted network (CVE-2023-48022).</source>
        <translation>事先在每个节点上启动 Ray：第一个节点用 `ray start --head`，其他节点用 `ray start --address=HOST:6379`。Ray 的面板没有密码：请只放在可信网络中 (CVE-2023-48022)。</translation>
    </message>
    <message>
        <source>verl, and Ray's command line, must be on PATH of every node (or in a container that the three srun lines name).</source>
        <translation>每个节点的 PATH 中都要有 verl 和 Ray 的命令行（或在三行 srun 所指的容器中）。</translation>
    </message>
    <message>
        <source>The plan expects responses of %1 tokens on average (%2 before the limit cuts them, with a cv of %3); verl only knows the longest, %4.</source>
        <translation>方案预计回复平均 %1 个 token（未被上限截断时 %2，cv 为 %3）；verl 只知道最长值 %4。</translation>
    </message>
    <message>
        <source>The plan expects responses of %1 tokens on average; verl only knows the longest, %2.</source>
        <translation>方案预计回复平均 %1 个 token；verl 只知道最长值 %2。</translation>
    </message>
    <message>
        <source>verl gathers every tensor whole to move weights into the rollout: %1 into every GPU in each step, where the plan moves %2; expect a longer update_weights than the plan's reshard.</source>
        <translation>verl 把每个张量完整收集后再送入 rollout：每一步向每张 GPU 送入 %1，而方案只移动 %2；update_weights 会比方案的重分片更久。</translation>
    </message>
    <message>
        <source>Megatron places the %1's pipeline stages far apart (tp, cp, dp, pp); the plan's ranks are %2.</source>
        <translation>Megatron 把 %1 的流水线阶段放得较远 (tp, cp, dp, pp)；方案的 rank 顺序是 %2。</translation>
    </message>
    <message>
        <source>verl moves the %1's gradients with its parameters; the plan treats them apart.</source>
        <translation>verl 把 %1 的梯度与参数一起移动；方案分别处理二者。</translation>
    </message>
    <message>
        <source>Servers tell no log-probs (rollout.calculate_log_probs=false), which one process of Python for each would hand on: up to %1 more a step. With true verl shows training/rollout_probs_diff_*, and algorithm.rollout_correction.rollout_is and rollout_rs need it.</source>
        <translation>服务器不返回对数概率（rollout.calculate_log_probs=false）：否则每个服务器的一个 Python 进程要逐个转交，每步最多多用 %1。设为 true 时 verl 显示 training/rollout_probs_diff_*，algorithm.rollout_correction.rollout_is 和 rollout_rs 也需要它。</translation>
    </message>
    <message>
        <source>Mixture of experts: routers of trainer and inference engine disagree on some tokens; watch training/rollout_probs_diff_* and consider actor.%1.router_replay.mode=R3 with rollout.enable_rollout_routing_replay=true, or algorithm.rollout_correction (verl issue 2953).</source>
        <translation>混合专家：训练器与推理引擎的路由器在某些 token 上不一致；请留意 training/rollout_probs_diff_*，并考虑 actor.%1.router_replay.mode=R3 配合 rollout.enable_rollout_routing_replay=true，或 algorithm.rollout_correction（verl issue 2953）。</translation>
    </message>
    <message>
        <source>Mixture of experts: vLLM's sleep level is 1 with expert parallelism, so weights go to host memory and need room there.</source>
        <translation>混合专家：使用专家并行时 vLLM 的 sleep level 为 1，权重会进入主机内存，需要在那里留出空间。</translation>
    </message>
    <message>
        <source>Written for verl %1; it runs with vllm 0.24.0 or sglang 0.5.12, torch 2.11.0 and transformers 5.9.0. NCCL 2.28.3 to 2.28.7 cannot restart communicators in a process: use the torch wheel's 2.28.9.</source>
        <translation>为 verl %1 编写；它与 vllm 0.24.0 或 sglang 0.5.12、torch 2.11.0 和 transformers 5.9.0 一起运行。NCCL 2.28.3 到 2.28.7 不能在进程内重启通信器：请用 torch wheel 自带的 2.28.9。</translation>
    </message>
    <message>
        <source>Written for verl %1; it runs with vllm 0.24.0 or sglang 0.5.12, torch 2.11.0 and transformers 5.9.0, %2. NCCL 2.28.3 to 2.28.7 cannot restart communicators in a process: use the torch wheel's 2.28.9.</source>
        <translation>为 verl %1 编写；它与 vllm 0.24.0 或 sglang 0.5.12、torch 2.11.0 和 transformers 5.9.0、%2 一起运行。NCCL 2.28.3 到 2.28.7 不能在进程内重启通信器：请用 torch wheel 自带的 2.28.9。</translation>
    </message>
    <message>
        <source>max_num_batched_tokens is raised from the plan's %1 prefill tokens to max_num_seqs, which the engines ask for.</source>
        <translation>max_num_batched_tokens 从方案的 %1 个 prefill token 提高到 max_num_seqs，这是引擎所要求的。</translation>
    </message>
    <message>
        <source>verl resumes generation that a weight update interrupts (partial rollouts); the plan counts whole responses, generated one step off.</source>
        <translation>verl 会继续被权重更新打断的生成 (partial rollouts)；方案按提前一步生成的完整回复计算。</translation>
    </message>
    <message>
        <source>%1 is no multiple of the %2 ranks that verl multiplies a limit by; the limit per GPU is rounded up, so that a longest sequence fits.</source>
        <translation>%1 不是 verl 用来乘上限的 %2 个 rank 的倍数；每张 GPU 的上限向上取整，使最长的序列放得下。</translation>
    </message>
    <message>
        <source>verl keeps a reference's parameters in host memory between its calls, whatever %1 says (workers/engine/*/transformer_impl.py); the plan keeps them on the GPU.</source>
        <translation>无论 %1 如何设置，verl 在两次调用之间都把参考模型的参数放在主机内存中 (workers/engine/*/transformer_impl.py)；方案则把它们留在 GPU 上。</translation>
    </message>
    <message>
        <source>verl's critic has one token limit for its update and for the values; the smaller of the plan's two is written.</source>
        <translation>verl 的 critic 在更新与计算 values 时共用一个 token 上限；这里写入方案两个上限中较小的一个。</translation>
    </message>
    <message>
        <source>verl 0.9.1 has no key for it and Ray fills its pools from any nodes: give the nodes of each type a resource of their own (ray start --resources) and its name to RayResourcePool's accelerator_type where the trainer makes its pools.</source>
        <translation>verl 0.9.1 没有对应的键，Ray 会用任意节点填充资源池：请给每种类型的节点各自的资源 (ray start --resources)，并在训练器建池处把其名称交给 RayResourcePool 的 accelerator_type。</translation>
    </message>
    <message>
        <source>%1 at commit %2 (%3; verl %4 does not run with later ones)</source>
        <translation>%1（提交 %2，%3；verl %4 不能与更新的版本一起运行）</translation>
    </message>
    <message>
        <source>There is no plan to run.</source>
        <translation>没有可以运行的方案。</translation>
    </message>
    <message>
        <source>A run file is missing: a run.yaml, or a preset.</source>
        <translation>缺少运行文件：请给出 run.yaml 或选择预设。</translation>
    </message>
    <message>
        <source>%1: expected KEY=VALUE</source>
        <translation>%1：格式应为 KEY=VALUE</translation>
    </message>
    <message>
        <source>A folder for the run is missing.</source>
        <translation>缺少运行目录。</translation>
    </message>
    <message>
        <source>%1 exists: a run begins in a new folder.</source>
        <translation>%1 已存在：新的运行需要一个新目录。</translation>
    </message>
    <message>
        <source>%1 exists: the run would write it.</source>
        <translation>%1 已存在：运行会写入该文件。</translation>
    </message>
    <message>
        <source>%1 is no folder that can be written.</source>
        <translation>%1 不是可写的目录。</translation>
    </message>
    <message>
        <source>The program tessera is not here: neither beside this window nor on PATH.</source>
        <translation>找不到 tessera 程序：本窗口程序旁边和 PATH 中都没有。</translation>
    </message>
    <message>
        <source>%1 cannot be started: %2</source>
        <translation>无法启动 %1：%2</translation>
    </message>
    <message>
        <source>tessera run ended without a word</source>
        <translation>tessera run 未输出任何信息就退出了</translation>
    </message>
    <message>
        <source>unsaved plan</source>
        <translation>未保存的方案</translation>
    </message>
    <message>
        <source>its constants are not here: whether it fits is not known</source>
        <translation>缺少该方案所用的校准常数，无法判断显存是否够用</translation>
    </message>
    <message>
        <source>fits with %1 (%2)</source>
        <translation>显存够用的概率 %1（%2）</translation>
    </message>
    <message>
        <source>%1 % in %2</source>
        <translation>%2 占 %1 %</translation>
    </message>
    <message>
        <source>not compared: the plan is %1</source>
        <translation>未作比较：该方案为 %1</translation>
    </message>
    <message>
        <source>no other plan was found</source>
        <translation>未找到其他方案</translation>
    </message>
    <message>
        <source>tied with row 2</source>
        <translation>与第 2 行不相上下</translation>
    </message>
    <message>
        <source>row 2: +%1</source>
        <translation>第 2 行：+%1</translation>
    </message>
    <message>
        <source>row 2: %1</source>
        <translation>第 2 行：%1</translation>
    </message>
    <message>
        <source>%1 tok/s/GPU</source>
        <translation>%1 tok/s/GPU</translation>
    </message>
    <message>
        <source>%1 behind %2</source>
        <translation>比%2差 %1</translation>
    </message>
    <message>
        <source>makes %1 fewer tokens/s/GPU than %2</source>
        <translation>每 GPU 每秒的 token 数比%2少 %1</translation>
    </message>
    <message>
        <source>costs %1 more than %2</source>
        <translation>成本比%2高 %1</translation>
    </message>
    <message>
        <source>needs %1 GPUs instead of the %2 of %3</source>
        <translation>需要 %1 张 GPU，而%3需要 %2 张</translation>
    </message>
    <message>
        <source>as good as without %1</source>
        <translation>与不限定 %1 时一样好</translation>
    </message>
    <message>
        <source>%1 fixed choices</source>
        <translation>%1 项限定</translation>
    </message>
    <message>
        <source>the plan without %1</source>
        <translation>不限定 %1 的方案</translation>
    </message>
    <message>
        <source>row %1</source>
        <translation>第 %1 行</translation>
    </message>
    <message>
        <source>No plan is possible: %1</source>
        <translation>没有可能的方案：%1</translation>
    </message>
    <message>
        <source>tied with row 1</source>
        <translation>与第 1 行持平</translation>
    </message>
    <message>
        <source>Only plans with %1 were searched.</source>
        <translation>只搜索了满足 %1 的方案。</translation>
    </message>
    <message>
        <source>Only plans with %1 were searched; without %2 another may be better.</source>
        <translation>只搜索了满足 %1 的方案；不限定 %2 时可能有更好的方案。</translation>
    </message>
    <message>
        <source>Setting</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Why not another choice?</source>
        <translation>为什么不选别的？</translation>
    </message>
    <message>
        <source>Why not</source>
        <translation>为什么不</translation>
    </message>
    <message>
        <source>What the best plan with this choice costs and why, or what speaks against it.</source>
        <translation>采用此选择的最佳方案要付出多少代价、为什么，或者有什么不允许它。</translation>
    </message>
    <message>
        <source>&amp;Setting</source>
        <translation>设置(&amp;S)</translation>
    </message>
    <message>
        <source>&amp;Value</source>
        <translation>取值(&amp;V)</translation>
    </message>
    <message>
        <source>&amp;Ask</source>
        <translation>询问(&amp;A)</translation>
    </message>
    <message>
        <source>&amp;Plan with it</source>
        <translation>按此规划(&amp;P)</translation>
    </message>
    <message>
        <source>Planning with %1</source>
        <translation>正在按 %1 规划</translation>
    </message>
    <message>
        <source>Exposed communication</source>
        <translation>未被掩盖的通信</translation>
    </message>
    <message>
        <source>Pipeline bubble</source>
        <translation>流水线气泡</translation>
    </message>
    <message>
        <source>Host and copies</source>
        <translation>主机与拷贝</translation>
    </message>
    <message>
        <source>Computation</source>
        <translation>计算</translation>
    </message>
    <message>
        <source>as good</source>
        <translation>持平</translation>
    </message>
    <message>
        <source>tensor parallelism</source>
        <translation>张量并行</translation>
    </message>
    <message>
        <source>pipeline stages</source>
        <translation>流水线级数</translation>
    </message>
    <message>
        <source>virtual stages</source>
        <translation>虚拟级数</translation>
    </message>
    <message>
        <source>context parallelism</source>
        <translation>上下文并行</translation>
    </message>
    <message>
        <source>expert parallelism</source>
        <translation>专家并行</translation>
    </message>
    <message>
        <source>ZeRO stage</source>
        <translation>ZeRO 阶段</translation>
    </message>
    <message>
        <source>shards of its weights</source>
        <translation>权重分片数</translation>
    </message>
    <message>
        <source>sequence parallelism</source>
        <translation>序列并行</translation>
    </message>
    <message>
        <source>recomputation</source>
        <translation>重计算</translation>
    </message>
    <message>
        <source>- the %1 has %2 %3; possible: %4</source>
        <translation>- %1 的 %2 为 %3；可行的是：%4</translation>
    </message>
    <message>
        <source>This plan is for the engine %1, and %2 cannot run it:</source>
        <translation>该方案面向引擎 %1，%2 无法运行它：</translation>
    </message>
    <message>
        <source>- and %1 more</source>
        <translation>- 另有 %1 项</translation>
    </message>
    <message>
        <source>&amp;Plan for %1</source>
        <translation>为 %1 规划(&amp;P)</translation>
    </message>
    <message>
        <source>Plan for %1 asks the same question for that engine; its plan is then exported here.</source>
        <translation>“为 %1 规划”对该引擎提出同一问题，随后在此导出所得方案。</translation>
    </message>
    <message>
        <source>&amp;Why not another choice...</source>
        <translation>为什么不选别的(&amp;W)...</translation>
    </message>
    <message>
        <source>pipeline bubble</source>
        <translation>流水线气泡</translation>
    </message>
    <message>
        <source>host and copies</source>
        <translation>主机与拷贝</translation>
    </message>
    <message>
        <source>computation</source>
        <translation>计算</translation>
    </message>
    <message>
        <source>%1 (by phase: %2).</source>
        <translation>%1（按阶段：%2）。</translation>
    </message>
    <message>
        <source>This plan has %1.</source>
        <translation>该方案已是 %1。</translation>
    </message>
    <message>
        <source>The best plan with %1 is %2 behind this one.</source>
        <translation>满足 %1 的最佳方案比该方案差 %2。</translation>
    </message>
    <message>
        <source>The best plan with %1 %2.</source>
        <translation>满足 %1 的最佳方案%2。</translation>
    </message>
    <message>
        <source>The best plan with %1 is as good as this one or better.</source>
        <translation>满足 %1 的最佳方案不比该方案差。</translation>
    </message>
    <message>
        <source>this plan</source>
        <translation>该方案</translation>
    </message>
    <message>
        <source>the plan with %1</source>
        <translation>满足 %1 的方案</translation>
    </message>
    <message>
        <source>Its layouts: %1.</source>
        <translation>其布局：%1。</translation>
    </message>
    <message>
        <source>Compared with %1</source>
        <translation>与%1相比</translation>
    </message>
    <message>
        <source>no reason is known</source>
        <translation>原因未知</translation>
    </message>
    <message>
        <source>Nothing fits: rank %1 needs %2 in %3 (%4), %5 too much</source>
        <translation>没有可行方案：rank %1 在 %3 阶段需要 %2（%4），超出 %5</translation>
    </message>
    <message>
        <source>No search has proven this plan: it is %1.</source>
        <translation>该方案未经搜索证明最优：它是 %1。</translation>
    </message>
    <message>
        <source> in %1</source>
        <translation>，用时 %1</translation>
    </message>
    <message>
        <source>Proven best of what is fixed%1: %2 candidates priced, %3 branches cut, gap %4 %.</source>
        <translation>已证明在固定的设置之内最优%1：评估了 %2 个候选，剪掉 %3 个分支，差距 %4 %。</translation>
    </message>
    <message>
        <source>best of what is fixed, %1</source>
        <translation>固定设置之内最优，%1</translation>
    </message>
    <message>
        <source>the best plan</source>
        <translation>最优方案</translation>
    </message>
    <message>
        <source>the best plan without that</source>
        <translation>不作此限制的最优方案</translation>
    </message>
    <message>
        <source>as good as %1</source>
        <translation>与%1一样好</translation>
    </message>
    <message>
        <source>It is %1: %2, %3.</source>
        <translation>它%1：%2，%3。</translation>
    </message>
    <message>
        <source>best as fixed</source>
        <translation>固定设置内最优</translation>
    </message>
    <message>
        <source>certificate: %1 = %2, proven best of what is fixed (gap %3 %); %4 candidates priced, %5 branches cut</source>
        <translation>证书：%1 = %2，已证明在固定的设置之内最优（差距 %3 %）；评估了 %4 个候选，剪掉 %5 个分支</translation>
    </message>
    <message>
        <source>fixed: %1</source>
        <translation>固定：%1</translation>
    </message>
    <message>
        <source>without that another plan may be better</source>
        <translation>不作此限制时可能有更好的方案</translation>
    </message>
    <message>
        <source>without that: %1, %2; this plan is %3 % behind</source>
        <translation>不作此限制：%1，%2；本方案落后 %3 %</translation>
    </message>
    <message>
        <source>in %1 of %2 steps</source>
        <translation>%2 步中的 %1 步</translation>
    </message>
    <message>
        <source>Over&amp;write</source>
        <translation>覆盖(&amp;W)</translation>
    </message>
    <message>
        <source>The folder has files of these names, which are replaced</source>
        <translation>该文件夹中已有同名文件，将被替换</translation>
    </message>
    <message>
        <source>The limit is one of GPUs, and the ranks are processors</source>
        <translation>该限值针对 GPU，而这些 rank 运行在处理器上</translation>
    </message>
    <message>
        <source>before and after: at these lengths; the plan's own prediction is at its own</source>
        <translation>之前与之后：按这些长度计算；方案自身的预测按其自身的长度</translation>
    </message>
    <message>
        <source>setting %1</source>
        <translation>设置 %1</translation>
    </message>
    <message>
        <source>time of a step</source>
        <translation>每步时间</translation>
    </message>
    <message>
        <source>tokens per second and GPU</source>
        <translation>每 GPU 每秒 token 数</translation>
    </message>
    <message>
        <source>cost of a step</source>
        <translation>每步成本</translation>
    </message>
    <message>
        <source>fewest GPUs</source>
        <translation>最少 GPU</translation>
    </message>
    <message>
        <source>%1, in the metric's unit</source>
        <translation>%1（以指标的单位）</translation>
    </message>
    <message>
        <source>Proven best of the space%1: %2 candidates priced, %3 branches cut, gap %4 %.</source>
        <translation>已证明在搜索空间内最优%1：评估了 %2 个候选，剪掉 %3 个分支，差距 %4 %。</translation>
    </message>
    <message>
        <source>The constants that this plan was made with are not here.</source>
        <translation>缺少制定该方案时所用的校准常数。</translation>
    </message>
    <message>
        <source>No plan is open.</source>
        <translation>没有打开的方案。</translation>
    </message>
    <message>
        <source>%1 of %2 %3</source>
        <translation>%1 / %2 %3</translation>
    </message>
    <message>
        <source>%1: no such folder or file</source>
        <translation>%1：没有该目录或文件</translation>
    </message>
    <message>
        <source>and %1 more
</source>
        <translation>另有 %1 条
</translation>
    </message>
    <message>
        <source>Time of a step</source>
        <translation>单步时间</translation>
    </message>
    <message>
        <source>GPUs</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>Memory of the fullest rank</source>
        <translation>显存占用最高的 rank</translation>
    </message>
    <message>
        <source>Cost of a step</source>
        <translation>单步成本</translation>
    </message>
    <message>
        <source>the cluster&apos;s money</source>
        <translation>集群所用货币</translation>
    </message>
    <message>
        <source>GPU seconds</source>
        <translation>GPU 秒</translation>
    </message>
    <message>
        <source>1 GPU</source>
        <translation>1 张 GPU</translation>
    </message>
    <message>
        <source>%1 GPUs</source>
        <translation>%1 张 GPU</translation>
    </message>
    <message>
        <source>%1 on the fullest rank</source>
        <translation>占用最高的 rank 用 %1</translation>
    </message>
    <message>
        <source>%1 a step</source>
        <translation>每步 %1</translation>
    </message>
    <message>
        <source>%1 GPU seconds a step</source>
        <translation>每步 %1 GPU 秒</translation>
    </message>
    <message>
        <source>Row %1: %2, %3</source>
        <translation>第 %1 行：%2，%3</translation>
    </message>
    <message>
        <source>Mesh of ranks</source>
        <translation>rank 网格</translation>
    </message>
    <message>
        <source>node %1</source>
        <translation>节点 %1</translation>
    </message>
    <message>
        <source>GPU %1</source>
        <translation>GPU %1</translation>
    </message>
    <message>
        <source>pod %1: %2 GPUs</source>
        <translation>pod %1：%2 张 GPU</translation>
    </message>
    <message>
        <source>&lt;b&gt;node %1&lt;/b&gt;, ranks %2-%3</source>
        <translation>&lt;b&gt;节点 %1&lt;/b&gt;，rank %2-%3</translation>
    </message>
    <message>
        <source>&lt;b&gt;pod %1&lt;/b&gt;, nodes %2-%3, ranks %4-%5</source>
        <translation>&lt;b&gt;pod %1&lt;/b&gt;，节点 %2-%3，rank %4-%5</translation>
    </message>
    <message>
        <source>&lt;br&gt;%1 GPUs: %2</source>
        <translation>&lt;br&gt;%1 张 GPU：%2</translation>
    </message>
    <message>
        <source>&lt;br&gt;%1 GPUs are not used</source>
        <translation>&lt;br&gt;%1 张 GPU 未使用</translation>
    </message>
    <message>
        <source>What is outside all phases</source>
        <translation>各阶段之外的部分</translation>
    </message>
    <message>
        <source>%1 took %2 longer than predicted: %3</source>
        <translation>%1 比预测多用 %2：%3</translation>
    </message>
    <message>
        <source>%1 took %2 less than predicted: %3</source>
        <translation>%1 比预测少用 %2：%3</translation>
    </message>
    <message>
        <source>Phase</source>
        <translation>阶段</translation>
    </message>
    <message>
        <source>Predicted</source>
        <translation>预测</translation>
    </message>
    <message>
        <source>Measured</source>
        <translation>实测</translation>
    </message>
    <message>
        <source>Share</source>
        <translation>占比</translation>
    </message>
    <message>
        <source>Error</source>
        <translation>误差</translation>
    </message>
    <message>
        <source>the plan&apos;s constants are not here</source>
        <translation>缺少该方案的校准常数</translation>
    </message>
    <message>
        <source>total</source>
        <translation>合计</translation>
    </message>
    <message>
        <source>... (%1 in all)</source>
        <translation>……（共 %1 个）</translation>
    </message>
    <message>
        <source>memory at its peak: %1</source>
        <translation>显存峰值：%1</translation>
    </message>
    <message>
        <source>its busiest link (%1) carries %2 % of what it could in the step</source>
        <translation>最忙的链路（%1）在一步中的平均利用率为 %2 %</translation>
    </message>
    <message>
        <source>in the run: %1</source>
        <translation>运行中：%1</translation>
    </message>
    <message>
        <source>idle</source>
        <translation>空闲</translation>
    </message>
    <message>
        <source>&lt;b&gt;rank %1&lt;/b&gt;, node %2, %3</source>
        <translation>&lt;b&gt;rank %1&lt;/b&gt;，节点 %2，%3</translation>
    </message>
    <message>
        <source>&lt;br&gt;not used</source>
        <translation>&lt;br&gt;未使用</translation>
    </message>
    <message>
        <source>&lt;br&gt;&lt;b&gt;%1&lt;/b&gt; %2, layers %3</source>
        <translation>&lt;br&gt;&lt;b&gt;%1&lt;/b&gt; %2，第 %3 层</translation>
    </message>
    <message>
        <source>&lt;br&gt;&amp;nbsp;&amp;nbsp;%1 group: %2</source>
        <translation>&lt;br&gt;&amp;nbsp;&amp;nbsp;%1 组：%2</translation>
    </message>
    <message>
        <source>%1 ranks</source>
        <translation>%1 个 rank</translation>
    </message>
    <message>
        <source>Role</source>
        <translation>角色</translation>
    </message>
    <message>
        <source>Ranks</source>
        <translation>rank</translation>
    </message>
    <message>
        <source>Start</source>
        <translation>开始</translation>
    </message>
    <message>
        <source>Time</source>
        <translation>时间</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Cluster</source>
        <translation>集群</translation>
    </message>
    <message>
        <source>%1, %2 of %3 GPUs</source>
        <translation>%1，使用 %3 张 GPU 中的 %2 张</translation>
    </message>
    <message>
        <source>Engine</source>
        <translation>训练引擎</translation>
    </message>
    <message>
        <source>the plan that was run: nothing is compared with what it predicts</source>
        <translation>所运行的方案：没有与其预测比较的内容</translation>
    </message>
    <message>
        <source>%1: %2 x %3 sequences of %4 + %5 tokens</source>
        <translation>%1：%2 x %3 个序列，每个 %4 + %5 个 token</translation>
    </message>
    <message>
        <source>Placement</source>
        <translation>放置</translation>
    </message>
    <message>
        <source>Step</source>
        <translation>步</translation>
    </message>
    <message>
        <source>Tokens/s/GPU</source>
        <translation>token/s/GPU</translation>
    </message>
    <message>
        <source>Peak memory</source>
        <translation>显存峰值</translation>
    </message>
    <message>
        <source>%1, time</source>
        <translation>%1 用时</translation>
    </message>
    <message>
        <source>Reshard, busiest rank</source>
        <translation>重分片，最忙的 rank</translation>
    </message>
    <message>
        <source>%1 and %2 take equally long.</source>
        <translation>%1 与 %2 用时相同。</translation>
    </message>
    <message>
        <source>%1 takes %2 longer than %3</source>
        <translation>%1 比 %3 多用 %2</translation>
    </message>
    <message>
        <source>%1: its phases wait for one another.</source>
        <translation>%1：各阶段互相等待。</translation>
    </message>
    <message>
        <source>%1: %2.</source>
        <translation>%1：%2。</translation>
    </message>
    <message>
        <source>
select it to plan it in full</source>
        <translation>
选中后会完整规划</translation>
    </message>
    <message>
        <source>best</source>
        <translation>最优</translation>
    </message>
    <message>
        <source>Against best</source>
        <translation>与最优相比</translation>
    </message>
    <message>
        <source>Layouts</source>
        <translation>并行布局</translation>
    </message>
    <message>
        <source>finished (%1)</source>
        <translation>已结束（%1）</translation>
    </message>
    <message>
        <source>terminated</source>
        <translation>被终止</translation>
    </message>
    <message>
        <source>running</source>
        <translation>运行中</translation>
    </message>
    <message>
        <source>no heartbeat</source>
        <translation>没有心跳</translation>
    </message>
    <message>
        <source>lost</source>
        <translation>失联</translation>
    </message>
    <message>
        <source>on another host</source>
        <translation>在其他主机上</translation>
    </message>
    <message>
        <source>since %1</source>
        <translation>自 %1 起</translation>
    </message>
    <message>
        <source>Rank</source>
        <translation>rank</translation>
    </message>
    <message>
        <source>State</source>
        <translation>状态</translation>
    </message>
    <message>
        <source>In phase</source>
        <translation>阶段已用时</translation>
    </message>
    <message>
        <source>Process</source>
        <translation>进程</translation>
    </message>
    <message>
        <source>below</source>
        <translation>小于</translation>
    </message>
    <message>
        <source>at most</source>
        <translation>不超过</translation>
    </message>
    <message>
        <source>above</source>
        <translation>大于</translation>
    </message>
    <message>
        <source>at least</source>
        <translation>不低于</translation>
    </message>
    <message>
        <source>%1: %2 is %3, where %4 was expected: %5</source>
        <translation>%1：%2 为 %3，期望 %4：%5</translation>
    </message>
    <message>
        <source>A rule is violated</source>
        <translation>有一条规则不满足</translation>
    </message>
    <message>
        <source>%1 rules are violated</source>
        <translation>有 %1 条规则不满足</translation>
    </message>
    <message>
        <source>%1, evidence %2. %3</source>
        <translation>%1，依据：%2。%3</translation>
    </message>
    <message>
        <source>Outcome</source>
        <translation>结果</translation>
    </message>
    <message>
        <source>Rule</source>
        <translation>规则</translation>
    </message>
    <message>
        <source>Metric</source>
        <translation>指标</translation>
    </message>
    <message>
        <source>Value</source>
        <translation>数值</translation>
    </message>
    <message>
        <source>Limit</source>
        <translation>限值</translation>
    </message>
    <message>
        <source>Advice</source>
        <translation>建议</translation>
    </message>
    <message>
        <source>several GPU types</source>
        <translation>多种 GPU 型号</translation>
    </message>
    <message>
        <source>a run on GPUs of one type</source>
        <translation>在同一种 GPU 上的运行</translation>
    </message>
    <message>
        <source>a run on the devices that its plan is for</source>
        <translation>在方案所针对的设备上的运行</translation>
    </message>
    <message>
        <source>worth using: the steps held out are %1% off with it, %2% before</source>
        <translation>值得使用：用它预测留出的步误差为 %1%，此前为 %2%</translation>
    </message>
    <message>
        <source>not worth using: the steps held out are %1% off with it, %2% before</source>
        <translation>不值得使用：用它预测留出的步误差为 %1%，此前为 %2%</translation>
    </message>
    <message>
        <source>nothing to use: no constant moved</source>
        <translation>没有可用的结果：没有常数变化</translation>
    </message>
    <message>
        <source>not known to be worth using: nothing is held out</source>
        <translation>不知是否值得使用：没有留出数据</translation>
    </message>
    <message>
        <source>noise, not worth using: steps of %1 differ by %2% among themselves, as ranks share the processors with one another and with whatever else runs there</source>
        <translation>是噪声，不值得使用：%1 的各步之间相差 %2%，因为各 rank 彼此共享处理器，也与其上运行的其他程序共享</translation>
    </message>
    <message>
        <source>Save the calibration all the same...</source>
        <translation>仍然保存校准结果...</translation>
    </message>
    <message>
        <source>Reward</source>
        <translation>奖励</translation>
    </message>
    <message>
        <source>KL</source>
        <translation>KL</translation>
    </message>
    <message>
        <source>Reshard</source>
        <translation>重分片</translation>
    </message>
    <message>
        <source>Reshard GB/s</source>
        <translation>重分片 GB/s</translation>
    </message>
    <message>
        <source>Reshard bytes</source>
        <translation>重分片字节数</translation>
    </message>
    <message>
        <source>not reached since %1 (%2); then: %3</source>
        <translation>自 %1 起无法连接（%2）；当时：%3</translation>
    </message>
    <message>
        <source>nobody asks</source>
        <translation>没有程序在询问</translation>
    </message>
    <message>
        <source>%1 of step %2</source>
        <translation>第 %2 步的 %1</translation>
    </message>
    <message>
        <source>paused after step %1</source>
        <translation>已在第 %1 步后暂停</translation>
    </message>
    <message>
        <source>stalled: nothing has moved for %1 (told after %2), rank %3 is in %4</source>
        <translation>停滞：已有 %1 没有进展（超过 %2 即视为停滞），rank %3 处于 %4</translation>
    </message>
    <message>
        <source>%1 ranks are loading</source>
        <translation>%1 个 rank 正在加载</translation>
    </message>
    <message>
        <source>%1 ranks are stopping</source>
        <translation>%1 个 rank 正在停止</translation>
    </message>
    <message>
        <source>%1 ranks are running</source>
        <translation>%1 个 rank 正在运行</translation>
    </message>
    <message>
        <source>the folder of the run is gone: %1</source>
        <translation>运行的文件夹不见了：%1</translation>
    </message>
    <message>
        <source>Working out %1</source>
        <translation>正在计算 %1</translation>
    </message>
    <message>
        <source>The cluster's file says how many nodes of each GPU type it has</source>
        <translation>每种 GPU 各有多少个节点，由集群文件说明</translation>
    </message>
    <message>
        <source>Choose</source>
        <translation>选择</translation>
    </message>
    <message>
        <source>The constants that the plan was made with (%1) are not here: what is shown of its step may differ from what it predicts.</source>
        <translation>制定该计划所用的常数（%1）不在这里：所显示的每步情况可能与计划的预测不同。</translation>
    </message>
    <message>
        <source>%1, as the cluster says how many nodes of each GPU type it has</source>
        <translation>%1，因为集群文件说明了每种 GPU 各有多少个节点</translation>
    </message>
    <message>
        <source>write a cluster file with other numbers</source>
        <translation>请写一个数目不同的集群文件</translation>
    </message>
    <message>
        <source>no rank has started</source>
        <translation>还没有 rank 启动</translation>
    </message>
    <message>
        <source>rank %1 failed with code %2 in %3</source>
        <translation>rank %1 在 %3 失败，退出码 %2</translation>
    </message>
    <message>
        <source>rank %1 has no heartbeat any more, its last was in %2</source>
        <translation>rank %1 已没有心跳，最后一次在 %2</translation>
    </message>
    <message>
        <source>rank %1 was lost in %2</source>
        <translation>rank %1 在 %2 失联</translation>
    </message>
    <message>
        <source>rank %1 waited for another in vain in %2</source>
        <translation>rank %1 在 %2 中空等另一个 rank</translation>
    </message>
    <message>
        <source>on another host: %1 of %2 ranks have not ended, the last sign of life is %3 old</source>
        <translation>在其他主机上：%2 个 rank 中有 %1 个尚未结束，最近一次活动是 %3 之前</translation>
    </message>
    <message>
        <source>stopped: its ranks were told to end</source>
        <translation>已停止：各 rank 收到了结束指令</translation>
    </message>
    <message>
        <source>stopped as it was asked to</source>
        <translation>已按要求停止</translation>
    </message>
    <message>
        <source>stopped: its ranks were killed when it was to end</source>
        <translation>已停止：要求结束时各 rank 被强行终止</translation>
    </message>
    <message>
        <source>saved, to be queued again</source>
        <translation>已保存，等待重新排队</translation>
    </message>
    <message>
        <source>stopped by a rule</source>
        <translation>已由规则停止</translation>
    </message>
    <message>
        <source>finished: all %1 ranks ended well</source>
        <translation>已完成：全部 %1 个 rank 正常结束</translation>
    </message>
    <message>
        <source>this row has no plan any more</source>
        <translation>该行已没有对应的方案</translation>
    </message>
    <message>
        <source>%1: no copy of it is here</source>
        <translation>%1：本机没有它的副本</translation>
    </message>
    <message>
        <source>Prompts a s&amp;tep</source>
        <translation>每步提示数(&amp;T)</translation>
    </message>
    <message>
        <source>Samp&amp;les a prompt</source>
        <translation>每提示采样数(&amp;L)</translation>
    </message>
    <message>
        <source>Response to&amp;kens</source>
        <translation>回复 token 数(&amp;K)</translation>
    </message>
    <message>
        <source>Topolog&amp;y</source>
        <translation>拓扑(&amp;Y)</translation>
    </message>
    <message>
        <source>Topology (*.txt)</source>
        <translation>拓扑 (*.txt)</translation>
    </message>
    <message>
        <source>A file of what nvidia-smi topo -m prints on a node: its GPUs, NVLink and network cards replace the cluster's</source>
        <translation>一个节点上 nvidia-smi topo -m 输出的文件：其中的 GPU、NVLink 和网卡取代集群文件中的相应内容</translation>
    </message>
    <message>
        <source>&amp;Algorithm</source>
        <translation>算法(&amp;A)</translation>
    </message>
    <message>
        <source>PPO has a critic, GRPO compares the samples of a prompt with one another; a workload that lists its own calls keeps them</source>
        <translation>PPO 有 critic，GRPO 在同一提示的各样本之间比较；自行列出调用的工作负载保持不变</translation>
    </message>
    <message>
        <source>as the cluster says</source>
        <translation>以集群文件为准</translation>
    </message>
    <message>
        <source>What a GPU costs an hour, in any money</source>
        <translation>一个 GPU 每小时的价格，货币不限</translation>
    </message>
    <message>
        <source>Price a GP&amp;U hour</source>
        <translation>GPU 每小时价格(&amp;U)</translation>
    </message>
    <message>
        <source>The mean length of a response; all other lengths change by the same factor, and the limit where it is not set</source>
        <translation>回答的平均长度；其他长度按同一倍数变化，未单独设定的上限也是如此</translation>
    </message>
    <message>
        <source>Do anything</source>
        <translation>执行命令</translation>
    </message>
    <message>
        <source>Part of a command&apos;s name</source>
        <translation>输入命令名的一部分</translation>
    </message>
    <message>
        <source>Command</source>
        <translation>命令</translation>
    </message>
    <message>
        <source>Commands</source>
        <translation>命令列表</translation>
    </message>
    <message>
        <source>%1 cannot be: %2</source>
        <translation>%1 不可行：%2</translation>
    </message>
    <message>
        <source>Why a degree cannot be</source>
        <translation>并行度不可行的原因</translation>
    </message>
    <message>
        <source>still checking %1</source>
        <translation>仍在检查 %1</translation>
    </message>
    <message>
        <source>Every value of %1 can be.</source>
        <translation>%1 的每个取值都可行。</translation>
    </message>
    <message>
        <source>Comparison and report</source>
        <translation>对比与报告</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>结论</translation>
    </message>
    <message>
        <source>What is wrong with a file</source>
        <translation>文件的问题</translation>
    </message>
    <message>
        <source>Planning</source>
        <translation>正在规划</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Stop waiting for this plan (Esc)</source>
        <translation>不再等待该方案（Esc）</translation>
    </message>
    <message>
        <source>Dismiss</source>
        <translation>关闭提示</translation>
    </message>
    <message>
        <source>This question is not planned: F5 plans it</source>
        <translation>该问题尚未规划：按 F5 规划</translation>
    </message>
    <message>
        <source>Plan for any engine</source>
        <translation>为任意引擎规划</translation>
    </message>
    <message>
        <source>Try: %1</source>
        <translation>可以尝试：%1</translation>
    </message>
    <message>
        <source>Save report</source>
        <translation>保存报告</translation>
    </message>
    <message>
        <source>Reports (*.html)</source>
        <translation>报告 (*.html)</translation>
    </message>
    <message>
        <source>Saved %1</source>
        <translation>已保存 %1</translation>
    </message>
    <message>
        <source>Explore</source>
        <translation>探索</translation>
    </message>
    <message>
        <source>Understand</source>
        <translation>剖析</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>运行</translation>
    </message>
    <message>
        <source>&amp;Run</source>
        <translation>运行(&amp;R)</translation>
    </message>
    <message>
        <source>none so far</source>
        <translation>暂无</translation>
    </message>
    <message>
        <source>&amp;File</source>
        <translation>文件(&amp;F)</translation>
    </message>
    <message>
        <source>&amp;Open plan...</source>
        <translation>打开方案(&amp;O)...</translation>
    </message>
    <message>
        <source>Recent &amp;plans</source>
        <translation>最近的方案(&amp;P)</translation>
    </message>
    <message>
        <source>&amp;Save plan</source>
        <translation>保存方案(&amp;S)</translation>
    </message>
    <message>
        <source>Save plan &amp;as...</source>
        <translation>方案另存为(&amp;A)...</translation>
    </message>
    <message>
        <source>&amp;Export views...</source>
        <translation>导出视图(&amp;E)...</translation>
    </message>
    <message>
        <source>Save repor&amp;t...</source>
        <translation>保存报告(&amp;T)...</translation>
    </message>
    <message>
        <source>&amp;Quit</source>
        <translation>退出(&amp;Q)</translation>
    </message>
    <message>
        <source>Open pro&amp;ject...</source>
        <translation>打开项目(&amp;J)...</translation>
    </message>
    <message>
        <source>Recent projec&amp;ts</source>
        <translation>最近的项目(&amp;T)</translation>
    </message>
    <message>
        <source>Sa&amp;ve project</source>
        <translation>保存项目(&amp;V)</translation>
    </message>
    <message>
        <source>Save project as...</source>
        <translation>项目另存为...</translation>
    </message>
    <message>
        <source>&amp;Edit</source>
        <translation>编辑(&amp;E)</translation>
    </message>
    <message>
        <source>&amp;Undo</source>
        <translation>撤销(&amp;U)</translation>
    </message>
    <message>
        <source>&amp;Redo</source>
        <translation>重做(&amp;R)</translation>
    </message>
    <message>
        <source>Plan &amp;again</source>
        <translation>重新规划(&amp;A)</translation>
    </message>
    <message>
        <source>&amp;Pin this plan</source>
        <translation>加入对比(&amp;P)</translation>
    </message>
    <message>
        <source>&amp;Language</source>
        <translation>语言(&amp;L)</translation>
    </message>
    <message>
        <source>The language changes when the window is opened again.</source>
        <translation>重新打开窗口后语言生效。</translation>
    </message>
    <message>
        <source>As the system</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>&amp;View</source>
        <translation>视图(&amp;V)</translation>
    </message>
    <message>
        <source>&amp;Question</source>
        <translation>问题(&amp;Q)</translation>
    </message>
    <message>
        <source>&amp;Light or dark</source>
        <translation>切换明暗(&amp;L)</translation>
    </message>
    <message>
        <source>&amp;Help</source>
        <translation>帮助(&amp;H)</translation>
    </message>
    <message>
        <source>&amp;Do anything...</source>
        <translation>执行命令(&amp;D)...</translation>
    </message>
    <message>
        <source>&amp;Keys</source>
        <translation>快捷键(&amp;K)</translation>
    </message>
    <message>
        <source>Opened %1</source>
        <translation>已打开 %1</translation>
    </message>
    <message>
        <source>Open project</source>
        <translation>打开项目</translation>
    </message>
    <message>
        <source>Projects (*.json)</source>
        <translation>项目 (*.json)</translation>
    </message>
    <message>
        <source>Save project</source>
        <translation>保存项目</translation>
    </message>
    <message>
        <source>Open plan</source>
        <translation>打开方案</translation>
    </message>
    <message>
        <source>Plans (*.json)</source>
        <translation>方案 (*.json)</translation>
    </message>
    <message>
        <source>Save plan</source>
        <translation>保存方案</translation>
    </message>
    <message>
        <source>Export views into</source>
        <translation>导出视图到</translation>
    </message>
    <message>
        <source>Filter the plans, metrics or samples</source>
        <translation>筛选方案、指标或样本</translation>
    </message>
    <message>
        <source>arrows, + -, Home</source>
        <translation>方向键、+ -、Home</translation>
    </message>
    <message>
        <source>In a chart: move, zoom, fit</source>
        <translation>图表中：移动、缩放、显示全部</translation>
    </message>
    <message>
        <source>In the mesh: other colours</source>
        <translation>网格中：切换着色方式</translation>
    </message>
    <message>
        <source>In the timeline, over time: zoom, move, fit what is chosen</source>
        <translation>时间线等按时间的视图中：缩放、移动、放大所选</translation>
    </message>
    <message>
        <source>There: next and previous span, next found, fold</source>
        <translation>同上：下一个和上一个片段、下一个匹配、折叠</translation>
    </message>
    <message>
        <source>Keys</source>
        <translation>快捷键</translation>
    </message>
    <message>
        <source>Follow a &amp;run...</source>
        <translation>跟踪运行(&amp;R)...</translation>
    </message>
    <message>
        <source>Open re&amp;mote run...</source>
        <translation>打开远程运行(&amp;M)...</translation>
    </message>
    <message>
        <source>Draw another run &amp;beside it...</source>
        <translation>叠加另一次运行(&amp;B)...</translation>
    </message>
    <message>
        <source>Only &amp;one run</source>
        <translation>只显示一次运行(&amp;O)</translation>
    </message>
    <message>
        <source>Recent r&amp;uns</source>
        <translation>最近的运行(&amp;U)</translation>
    </message>
    <message>
        <source>Asking %1</source>
        <translation>正在询问 %1</translation>
    </message>
    <message>
        <source>Follow a run</source>
        <translation>跟踪运行</translation>
    </message>
    <message>
        <source>Draw a run beside this one</source>
        <translation>叠加另一次运行</translation>
    </message>
    <message>
        <source>as in the opened plan</source>
        <translation>与打开的方案相同</translation>
    </message>
    <message>
        <source>free</source>
        <translation>不限</translation>
    </message>
    <message>
        <source>&amp;Model</source>
        <translation>模型(&amp;M)</translation>
    </message>
    <message>
        <source>&amp;Cluster</source>
        <translation>集群(&amp;C)</translation>
    </message>
    <message>
        <source>Cluster (*.yaml *.yml)</source>
        <translation>集群 (*.yaml *.yml)</translation>
    </message>
    <message>
        <source>&amp;Workload</source>
        <translation>负载(&amp;W)</translation>
    </message>
    <message>
        <source>Workload (*.yaml *.yml)</source>
        <translation>负载 (*.yaml *.yml)</translation>
    </message>
    <message>
        <source>&amp;Nodes</source>
        <translation>节点数(&amp;N)</translation>
    </message>
    <message>
        <source>&amp;GPUs per node</source>
        <translation>每节点 GPU 数(&amp;G)</translation>
    </message>
    <message>
        <source>&lt;b&gt;Fixed degrees&lt;/b&gt; (empty = free)</source>
        <translation>&lt;b&gt;指定并行度&lt;/b&gt;（留空 = 不限）</translation>
    </message>
    <message>
        <source>Other &amp;settings</source>
        <translation>其他设置(&amp;S)</translation>
    </message>
    <message>
        <source>Free all</source>
        <translation>全部不限</translation>
    </message>
    <message>
        <source>Open a file</source>
        <translation>打开文件</translation>
    </message>
    <message>
        <source>Open a file: %1</source>
        <translation>打开文件：%1</translation>
    </message>
    <message>
        <source>Eng&amp;ine</source>
        <translation>训练引擎(&amp;I)</translation>
    </message>
    <message>
        <source>&amp;Objective</source>
        <translation>优化目标(&amp;O)</translation>
    </message>
    <message>
        <source>The probability of running out of memory that a plan may have</source>
        <translation>允许方案显存溢出的概率</translation>
    </message>
    <message>
        <source>&amp;Placement</source>
        <translation>放置(&amp;P)</translation>
    </message>
    <message>
        <source>No run is open</source>
        <translation>没有打开的运行</translation>
    </message>
    <message>
        <source>State of the run</source>
        <translation>运行状态</translation>
    </message>
    <message>
        <source>Rules that are violated</source>
        <translation>不满足的规则</translation>
    </message>
    <message>
        <source>Largest difference from the prediction</source>
        <translation>与预测相差最大之处</translation>
    </message>
    <message>
        <source>What is wrong with the run&apos;s files</source>
        <translation>运行文件的问题</translation>
    </message>
    <message>
        <source>Star&amp;t a run...</source>
        <translation>启动运行(&amp;T)...</translation>
    </message>
    <message>
        <source>&amp;Pause the run</source>
        <translation>暂停运行(&amp;P)</translation>
    </message>
    <message>
        <source>&amp;Go on with the run</source>
        <translation>继续运行(&amp;G)</translation>
    </message>
    <message>
        <source>&amp;Stop the run</source>
        <translation>停止运行(&amp;S)</translation>
    </message>
    <message>
        <source>&amp;Learn</source>
        <translation>重新校准(&amp;L)</translation>
    </message>
    <message>
        <source>&amp;Advise...</source>
        <translation>调优建议(&amp;A)...</translation>
    </message>
    <message>
        <source>Views of the run</source>
        <translation>运行的视图</translation>
    </message>
    <message>
        <source>Figures</source>
        <translation>曲线与表格</translation>
    </message>
    <message>
        <source>The run did not start: %1</source>
        <translation>运行未能启动：%1</translation>
    </message>
    <message>
        <source>&amp;Open run...</source>
        <translation>打开运行(&amp;O)...</translation>
    </message>
    <message>
        <source>&amp;Beside it...</source>
        <translation>叠加运行(&amp;B)...</translation>
    </message>
    <message>
        <source>Draw another run beside this one</source>
        <translation>把另一次运行叠加到图中</translation>
    </message>
    <message>
        <source>Refit the constants from what this run measured (tessera learn)</source>
        <translation>用本次运行的实测重新拟合校准常数（tessera learn）</translation>
    </message>
    <message>
        <source>What to change about this run (tessera advise)</source>
        <translation>这次运行可以怎样改进（tessera advise）</translation>
    </message>
    <message>
        <source>reading the folder</source>
        <translation>正在读取目录</translation>
    </message>
    <message>
        <source>Starting...</source>
        <translation>正在启动...</translation>
    </message>
    <message>
        <source>Stopping...</source>
        <translation>正在停止...</translation>
    </message>
    <message>
        <source>Starting in %1</source>
        <translation>正在 %1 中启动</translation>
    </message>
    <message>
        <source>Learned from this run</source>
        <translation>由本次运行校准的结果</translation>
    </message>
    <message>
        <source>Folder for the learned calibration.json and the run&apos;s plan.json</source>
        <translation>存放校准结果 calibration.json 和该运行 plan.json 的目录</translation>
    </message>
    <message>
        <source>What to change</source>
        <translation>改进建议</translation>
    </message>
    <message>
        <source>Save the calibration...</source>
        <translation>保存校准结果...</translation>
    </message>
    <message>
        <source>Save the calibration</source>
        <translation>保存校准结果</translation>
    </message>
    <message>
        <source>Stop the run</source>
        <translation>停止运行</translation>
    </message>
    <message>
        <source>Ask all ranks to end after the phase that they are in?</source>
        <translation>要让所有 rank 在当前阶段结束后退出吗？</translation>
    </message>
    <message>
        <source>Slider: %1</source>
        <translation>滑块：%1</translation>
    </message>
    <message>
        <source>Views of the step</source>
        <translation>单步的视图</translation>
    </message>
    <message>
        <source>%1: the token is refused</source>
        <translation>%1：令牌被拒绝</translation>
    </message>
    <message>
        <source>no tessera serve answers at %1</source>
        <translation>%1 上没有 tessera serve 响应</translation>
    </message>
    <message>
        <source>and %1 rows more</source>
        <translation>另有 %1 行</translation>
    </message>
    <message>
        <source>rank %1, %2</source>
        <translation>rank %1，%2</translation>
    </message>
    <message>
        <source>nodes %1-%2</source>
        <translation>节点 %1-%2</translation>
    </message>
    <message>
        <source>Roles on %1 ranks</source>
        <translation>%1 个 rank 上的角色</translation>
    </message>
    <message>
        <source>and %1 rows of nodes more</source>
        <translation>另有 %1 行节点</translation>
    </message>
    <message>
        <source>the first %1 of a node&apos;s %2 GPUs</source>
        <translation>每节点 %2 张 GPU 中的前 %1 张</translation>
    </message>
    <message>
        <source>Nodes with the same roles share a row: the first one&apos;s is drawn.</source>
        <translation>角色相同的节点合并为一行，画出其中第一个。</translation>
    </message>
    <message>
        <source>%1 prompts a step, %2 responses each; %3 prompt tokens, %4 of a response on average, %5 at most</source>
        <translation>每步 %1 个提示，各采样 %2 个回复；提示 %3 个 token，回复平均 %4 个、最多 %5 个</translation>
    </message>
    <message>
        <source>The step</source>
        <translation>单步</translation>
    </message>
    <message>
        <source>%1, %2 from %3 on</source>
        <translation>%1，用时 %2，自 %3 起</translation>
    </message>
    <message>
        <source>Predicted iteration</source>
        <translation>预测的一次迭代</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>usable %1 of %2</source>
        <translation>可用 %1，共 %2</translation>
    </message>
    <message>
        <source>Rank %1, the fullest, by phase</source>
        <translation>占用最高的 rank %1，按阶段</translation>
    </message>
    <message>
        <source>Pinned plans</source>
        <translation>对比中的方案</translation>
    </message>
    <message>
        <source>The question</source>
        <translation>问题</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>规模</translation>
    </message>
    <message>
        <source>nodes: %1, of %2 %3 each</source>
        <translation>%1 个节点，每节点 %2 张 %3</translation>
    </message>
    <message>
        <source>Workload</source>
        <translation>负载</translation>
    </message>
    <message>
        <source>Batch</source>
        <translation>批</translation>
    </message>
    <message>
        <source>Objective</source>
        <translation>优化目标</translation>
    </message>
    <message>
        <source>Memory risk</source>
        <translation>显存风险</translation>
    </message>
    <message>
        <source>Fixed</source>
        <translation>指定的设置</translation>
    </message>
    <message>
        <source>Why nothing fits</source>
        <translation>为什么没有可行方案</translation>
    </message>
    <message>
        <source>Plans</source>
        <translation>方案</translation>
    </message>
    <message>
        <source>This report is of row %1.</source>
        <translation>本报告针对第 %1 行。</translation>
    </message>
    <message>
        <source>Mesh</source>
        <translation>网格</translation>
    </message>
    <message>
        <source>Why</source>
        <translation>依据</translation>
    </message>
    <message>
        <source>%1 on %2</source>
        <translation>%2 上的 %1</translation>
    </message>
    <message>
        <source>en</source>
        <translation>zh-CN</translation>
    </message>
    <message>
        <source>Written %1</source>
        <translation>写于 %1</translation>
    </message>
    <message>
        <source>; planned %1 by Tessera %2 with the constants %3</source>
        <translation>；方案由 Tessera %2 于 %1 制定，校准常数为 %3</translation>
    </message>
    <message>
        <source>rule: %1</source>
        <translation>规则：%1</translation>
    </message>
    <message>
        <source>Time by phase</source>
        <translation>各阶段用时</translation>
    </message>
    <message>
        <source>Metrics</source>
        <translation>指标</translation>
    </message>
    <message>
        <source>No step has ended so far.</source>
        <translation>还没有完成任何一步。</translation>
    </message>
    <message>
        <source>All other metrics (%1)</source>
        <translation>其余全部指标（%1）</translation>
    </message>
    <message>
        <source>and %1 metrics more</source>
        <translation>另有 %1 项指标</translation>
    </message>
    <message>
        <source>Predicted beside measured</source>
        <translation>预测与实测对照</translation>
    </message>
    <message>
        <source>predicted</source>
        <translation>预测</translation>
    </message>
    <message>
        <source>measured</source>
        <translation>实测</translation>
    </message>
    <message>
        <source>The run %1</source>
        <translation>运行 %1</translation>
    </message>
    <message>
        <source>The folder is being read.</source>
        <translation>正在读取目录。</translation>
    </message>
    <message>
        <source>Steps %1 to %2.</source>
        <translation>第 %1 到 %2 步。</translation>
    </message>
    <message>
        <source>Rules</source>
        <translation>规则</translation>
    </message>
    <message>
        <source>rank %1</source>
        <translation>rank %1</translation>
    </message>
    <message>
        <source>%1 keeps %2</source>
        <translation>%1 保留 %2</translation>
    </message>
    <message>
        <source>%1 sends %2 %3</source>
        <translation>%1 向 %2 发送 %3</translation>
    </message>
    <message>
        <source>sent by %1</source>
        <translation>由 %1 发送</translation>
    </message>
    <message>
        <source>received by %1</source>
        <translation>由 %1 接收</translation>
    </message>
    <message>
        <source>; does not fit</source>
        <translation>；显存不够</translation>
    </message>
    <message>
        <source>Method</source>
        <translation>方法</translation>
    </message>
    <message>
        <source>Received</source>
        <translation>接收</translation>
    </message>
    <message>
        <source>Sent</source>
        <translation>发送</translation>
    </message>
    <message>
        <source>Redundant</source>
        <translation>冗余</translation>
    </message>
    <message>
        <source>Peak</source>
        <translation>峰值</translation>
    </message>
    <message>
        <source>Wire</source>
        <translation>传输</translation>
    </message>
    <message>
        <source>Software</source>
        <translation>软件开销</translation>
    </message>
    <message>
        <source>Total</source>
        <translation>总计</translation>
    </message>
    <message>
        <source>Meanwhile</source>
        <translation>与之并行</translation>
    </message>
    <message>
        <source>This plan has no rollout to bring weights to.</source>
        <translation>该方案没有 rollout，无需传送权重。</translation>
    </message>
    <message>
        <source>The rollout has some of the trainer&apos;s GPUs and others: the methods know those that share all, or none.</source>
        <translation>rollout 只用了训练侧的部分 GPU：各方法只支持全部共用或完全分开。</translation>
    </message>
    <message>
        <source>embedding</source>
        <translation>词嵌入</translation>
    </message>
    <message>
        <source>head and last norm</source>
        <translation>输出头与末尾归一化</translation>
    </message>
    <message>
        <source>layer %1</source>
        <translation>第 %1 层</translation>
    </message>
    <message>
        <source>the whole model</source>
        <translation>整个模型</translation>
    </message>
    <message>
        <source>Training and rollout hold the weights alike: nothing travels.</source>
        <translation>训练与 rollout 的权重分布一致：无需传输。</translation>
    </message>
    <message>
        <source>This plan is too large for exact ranges: who sends to whom is not listed.</source>
        <translation>方案规模太大，未逐一列出收发关系。</translation>
    </message>
    <message>
        <source>Open a remote run</source>
        <translation>打开远程运行</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>地址</translation>
    </message>
    <message>
        <source>127.0.0.1:PORT, where the tunnel ends here</source>
        <translation>127.0.0.1:端口，即隧道在本机的出口</translation>
    </message>
    <message>
        <source>Token</source>
        <translation>令牌</translation>
    </message>
    <message>
        <source>as tessera serve said it; or set %1</source>
        <translation>由 tessera serve 给出；也可设置 %1</translation>
    </message>
    <message>
        <source>Runs that are served there</source>
        <translation>那里提供的运行</translation>
    </message>
    <message>
        <source>What is missing</source>
        <translation>缺少什么</translation>
    </message>
    <message>
        <source>&amp;Address</source>
        <translation>地址(&amp;A)</translation>
    </message>
    <message>
        <source>&amp;Token</source>
        <translation>令牌(&amp;T)</translation>
    </message>
    <message>
        <source>&amp;Runs</source>
        <translation>运行(&amp;R)</translation>
    </message>
    <message>
        <source>&amp;Open</source>
        <translation>打开(&amp;O)</translation>
    </message>
    <message>
        <source>An address is missing: 127.0.0.1:PORT.</source>
        <translation>缺少地址：127.0.0.1:端口。</translation>
    </message>
    <message>
        <source>%1 is no 127.0.0.1:PORT or 127.0.0.1:PORT/RUN.</source>
        <translation>%1 不符合 127.0.0.1:PORT 或 127.0.0.1:PORT/RUN。</translation>
    </message>
    <message>
        <source>A token is missing: 64 hexadecimal digits.</source>
        <translation>缺少令牌：64 位十六进制数字。</translation>
    </message>
    <message>
        <source>No run is served there.</source>
        <translation>那里没有提供任何运行。</translation>
    </message>
    <message>
        <source>%1 of the sample</source>
        <translation>样本的%1</translation>
    </message>
    <message>
        <source>Samples of the run</source>
        <translation>运行的样本</translation>
    </message>
    <message>
        <source>What is wrong with the samples</source>
        <translation>样本文件的问题</translation>
    </message>
    <message>
        <source>Prompt</source>
        <translation>提示</translation>
    </message>
    <message>
        <source>Response</source>
        <translation>回复</translation>
    </message>
    <message>
        <source>Expected</source>
        <translation>标准答案</translation>
    </message>
    <message>
        <source>Filter samples by a part of their texts</source>
        <translation>按文本片段筛选样本</translation>
    </message>
    <message>
        <source>Filter of the samples</source>
        <translation>样本筛选</translation>
    </message>
    <message>
        <source>newest</source>
        <translation>最新</translation>
    </message>
    <message>
        <source>Last step whose samples are shown</source>
        <translation>显示样本的最后一步</translation>
    </message>
    <message>
        <source>Samples up to this step; the smallest value follows the run</source>
        <translation>显示到这一步为止的样本；取最小值时跟随运行</translation>
    </message>
    <message>
        <source>Which samples are shown</source>
        <translation>显示了哪些样本</translation>
    </message>
    <message>
        <source>&amp;up to step</source>
        <translation>截至第几步(&amp;U)</translation>
    </message>
    <message>
        <source>%1 of %2</source>
        <translation>%1 / %2</translation>
    </message>
    <message>
        <source>, %1 tokens</source>
        <translation>，%1 个 token</translation>
    </message>
    <message>
        <source>&lt;b&gt;Prompt&lt;/b&gt;</source>
        <translation>&lt;b&gt;提示&lt;/b&gt;</translation>
    </message>
    <message>
        <source>, ended</source>
        <translation>，正常结束</translation>
    </message>
    <message>
        <source>, cut at the limit</source>
        <translation>，达到上限被截断</translation>
    </message>
    <message>
        <source>, reward %1</source>
        <translation>，奖励 %1</translation>
    </message>
    <message>
        <source>, no reward</source>
        <translation>，无奖励</translation>
    </message>
    <message>
        <source>, step %1</source>
        <translation>，第 %1 步</translation>
    </message>
    <message>
        <source>&lt;b&gt;Response&lt;/b&gt;</source>
        <translation>&lt;b&gt;回复&lt;/b&gt;</translation>
    </message>
    <message>
        <source>Samples</source>
        <translation>样本</translation>
    </message>
    <message>
        <source>Last</source>
        <translation>最新值</translation>
    </message>
    <message>
        <source>Metrics of the run</source>
        <translation>运行的指标</translation>
    </message>
    <message>
        <source>Search metrics; Enter draws the first</source>
        <translation>搜索指标；按 Enter 绘制第一个</translation>
    </message>
    <message>
        <source>Search of the metrics</source>
        <translation>指标搜索</translation>
    </message>
    <message>
        <source>S&amp;moothing</source>
        <translation>平滑(&amp;M)</translation>
    </message>
    <message>
        <source>Smoothing</source>
        <translation>平滑</translation>
    </message>
    <message>
        <source>Weight of the steps before in an exponential moving mean; 0 = none</source>
        <translation>指数移动平均中前面各步的权重；0 表示不平滑</translation>
    </message>
    <message>
        <source>No step has been measured so far.</source>
        <translation>目前还没有测得任何一步。</translation>
    </message>
    <message>
        <source>Check a metric to draw it.</source>
        <translation>勾选一个指标即可绘制。</translation>
    </message>
    <message>
        <source>, smoothed %1</source>
        <translation>，平滑后 %1</translation>
    </message>
    <message>
        <source>Working out the step for the report</source>
        <translation>正在为报告计算该步</translation>
    </message>
    <message>
        <source>%1: %2 operations</source>
        <translation>%1：%2 个操作</translation>
    </message>
    <message>
        <source>Bytes from sender (rows) to receiver (columns)</source>
        <translation>从发送方（行）到接收方（列）的字节数</translation>
    </message>
    <message>
        <source>%1 stay on %2</source>
        <translation>%1 留在 %2 上</translation>
    </message>
    <message>
        <source>%1 from %2 to %3</source>
        <translation>%1，从 %2 到 %3</translation>
    </message>
    <message>
        <source>moves</source>
        <translation>移动</translation>
    </message>
    <message>
        <source>stays</source>
        <translation>留下</translation>
    </message>
    <message>
        <source>%1 move between nodes, at most %2 to one of them; %3 stay within nodes.</source>
        <translation>%1 在节点之间移动，其中一个节点最多接收 %2；%3 留在节点内。</translation>
    </message>
    <message>
        <source>%1 move, at most %2 to one rank; %3 stay where they are.</source>
        <translation>%1 移动，其中一个 rank 最多接收 %2；%3 留在原处。</translation>
    </message>
    <message>
        <source>The simulated step</source>
        <translation>模拟的一步</translation>
    </message>
    <message>
        <source>Operations of equal ranks over the step</source>
        <translation>一步中各组相同 rank 的操作</translation>
    </message>
    <message>
        <source>and %1 groups of ranks more</source>
        <translation>以及另外 %1 组 rank</translation>
    </message>
    <message>
        <source>The way of the weights</source>
        <translation>权重的去向</translation>
    </message>
    <message>
        <source>%1: %2 a step, %3 free</source>
        <translation>%1：每步 %2，剩余 %3</translation>
    </message>
    <message>
        <source>%1: the best plan then takes %2 a step and leaves its fullest rank %3 of what plans may use</source>
        <translation>%1：此时最佳方案每步用时 %2，其最满的 rank 在方案可用的显存中还剩 %3</translation>
    </message>
    <message>
        <source>ZeRO, cp, ep, tokens</source>
        <translation>ZeRO、cp、ep、tokens</translation>
    </message>
    <message>
        <source>ZeRO stage, context and expert parallelism, tokens of a micro-batch</source>
        <translation>ZeRO 阶段、上下文并行与专家并行、微批次的 token 数</translation>
    </message>
    <message>
        <source>Log of the run</source>
        <translation>运行的日志</translation>
    </message>
    <message>
        <source>Log</source>
        <translation>日志</translation>
    </message>
    <message>
        <source>1 rank on %1, for the engine %2</source>
        <translation>%1 上的 1 个 rank，训练引擎 %2</translation>
    </message>
    <message>
        <source>%1 ranks on %2, for the engine %3</source>
        <translation>%2 上的 %1 个 rank，训练引擎 %3</translation>
    </message>
    <message>
        <source>Start a run</source>
        <translation>启动运行</translation>
    </message>
    <message>
        <source>Run file</source>
        <translation>运行文件</translation>
    </message>
    <message>
        <source>a run.yaml, or a preset</source>
        <translation>run.yaml 或预设</translation>
    </message>
    <message>
        <source>Settings of the run</source>
        <translation>运行的设置</translation>
    </message>
    <message>
        <source>KEY=VALUE, one a line, as data.train_files=[digits.jsonl]</source>
        <translation>KEY=VALUE，每行一个，例如 data.train_files=[digits.jsonl]</translation>
    </message>
    <message>
        <source>Folder of the run</source>
        <translation>运行目录</translation>
    </message>
    <message>
        <source>a new folder</source>
        <translation>新目录</translation>
    </message>
    <message>
        <source>Plan</source>
        <translation>方案</translation>
    </message>
    <message>
        <source>&amp;Run file</source>
        <translation>运行文件(&amp;R)</translation>
    </message>
    <message>
        <source>Choose a run file</source>
        <translation>选择运行文件</translation>
    </message>
    <message>
        <source>&amp;Settings</source>
        <translation>设置(&amp;S)</translation>
    </message>
    <message>
        <source>&amp;Folder</source>
        <translation>目录(&amp;F)</translation>
    </message>
    <message>
        <source>Choose a folder</source>
        <translation>选择目录</translation>
    </message>
    <message>
        <source>S&amp;tart</source>
        <translation>启动(&amp;T)</translation>
    </message>
    <message>
        <source>Run files (*.yaml)</source>
        <translation>运行文件 (*.yaml)</translation>
    </message>
    <message>
        <source>Where to make the run&apos;s folder</source>
        <translation>在哪个目录下创建运行目录</translation>
    </message>
    <message>
        <source>reading samples.jsonl</source>
        <translation>正在读取 samples.jsonl</translation>
    </message>
    <message>
        <source>no sample of that step or an earlier one</source>
        <translation>这一步及之前都没有样本</translation>
    </message>
    <message>
        <source>no samples</source>
        <translation>没有样本</translation>
    </message>
    <message>
        <source>%1 samples of steps %2 to %3</source>
        <translation>第 %2 到 %3 步的 %1 个样本</translation>
    </message>
    <message>
        <source>; the file has earlier ones: choose a step</source>
        <translation>；文件中还有更早的样本：请选择步数</translation>
    </message>
    <message>
        <source>yes</source>
        <translation>是</translation>
    </message>
    <message>
        <source>cut</source>
        <translation>截断</translation>
    </message>
    <message>
        <source>Response tokens</source>
        <translation>回复 token 数</translation>
    </message>
    <message>
        <source>Prompt tokens</source>
        <translation>提示 token 数</translation>
    </message>
    <message>
        <source>Ended</source>
        <translation>正常结束</translation>
    </message>
    <message>
        <source>all</source>
        <translation>合计</translation>
    </message>
    <message>
        <source>left</source>
        <translation>剩余</translation>
    </message>
    <message>
        <source>Class</source>
        <translation>类别</translation>
    </message>
    <message>
        <source>Then</source>
        <translation>此刻</translation>
    </message>
    <message>
        <source>At the peak</source>
        <translation>峰值时</translation>
    </message>
    <message>
        <source>%1 of the %2 that plans may use</source>
        <translation>%1，方案可用显存为 %2</translation>
    </message>
    <message>
        <source>%1 of the %2 %3 that plans may use</source>
        <translation>%1 / %2 %3（方案可用显存）</translation>
    </message>
    <message>
        <source>It holds the same all the time.</source>
        <translation>占用始终不变。</translation>
    </message>
    <message>
        <source>There %1 come on top of the %2 that it always holds.</source>
        <translation>此时在常驻的 %2 之上再加 %1。</translation>
    </message>
    <message>
        <source>There %1 and %2 meet, on top of the %3 that it always holds.</source>
        <translation>此时 %1 与 %2 叠加在常驻的 %3 之上。</translation>
    </message>
    <message>
        <source>Rank %1 has no role.</source>
        <translation>rank %1 没有角色。</translation>
    </message>
    <message>
        <source>between phases</source>
        <translation>阶段之间</translation>
    </message>
    <message>
        <source>in %1</source>
        <translation>处于 %1</translation>
    </message>
    <message>
        <source>&lt;b&gt;%1 %2&lt;/b&gt;, %3 into the step. </source>
        <translation>&lt;b&gt;%1，%2&lt;/b&gt;，在一步开始后 %3。</translation>
    </message>
    <message>
        <source>&lt;b&gt;%1 too much.&lt;/b&gt; </source>
        <translation>&lt;b&gt;超出 %1。&lt;/b&gt;</translation>
    </message>
    <message>
        <source>In %1 at most %2.</source>
        <translation>在 %1 中最多 %2。</translation>
    </message>
    <message>
        <source>rank %1 at %2, %3</source>
        <translation>rank %1，%2，%3</translation>
    </message>
    <message>
        <source>waiting</source>
        <translation>等待中</translation>
    </message>
    <message>
        <source>Replica</source>
        <translation>副本</translation>
    </message>
    <message>
        <source>Sequences</source>
        <translation>序列数</translation>
    </message>
    <message>
        <source>Active then</source>
        <translation>此刻活跃</translation>
    </message>
    <message>
        <source>Ended then</source>
        <translation>此刻已结束</translation>
    </message>
    <message>
        <source>Half after</source>
        <translation>过半结束于</translation>
    </message>
    <message>
        <source>All after</source>
        <translation>全部结束于</translation>
    </message>
    <message>
        <source>All %1 responses end together, after %2: there is no tail.</source>
        <translation>%1 个回复在 %2 时一同结束：没有长尾。</translation>
    </message>
    <message>
        <source>, the very last on %1</source>
        <translation>，最后一个在 %1 上</translation>
    </message>
    <message>
        <source>Half of the %1 responses have ended after %2, nine tenths after %3. The others take another %4: &lt;b&gt;the tail is %5 % of the generation&lt;/b&gt;%6.</source>
        <translation>%1 个回复在 %2 时结束一半，%3 时结束九成。其余还要 %4：&lt;b&gt;长尾占生成时间的 %5 %&lt;/b&gt;%6。</translation>
    </message>
    <message>
        <source>%1 active, %2 of %3 ended</source>
        <translation>活跃 %1，已结束 %2 / %3</translation>
    </message>
    <message>
        <source>%1 into the generation: %2</source>
        <translation>生成开始后 %1：%2</translation>
    </message>
    <message>
        <source>Load of links over the simulated step</source>
        <translation>模拟单步中的链路负载</translation>
    </message>
    <message>
        <source>mean</source>
        <translation>平均</translation>
    </message>
    <message>
        <source>peak</source>
        <translation>峰值</translation>
    </message>
    <message>
        <source>link</source>
        <translation>链路</translation>
    </message>
    <message>
        <source>of what a link carries</source>
        <translation>的链路容量</translation>
    </message>
    <message>
        <source>%1 more: PgUp, PgDn</source>
        <translation>还有 %1 条：PgUp、PgDn</translation>
    </message>
    <message>
        <source>The fullest link</source>
        <translation>负载最高的链路</translation>
    </message>
    <message>
        <source>The load that is shown</source>
        <translation>显示的负载</translation>
    </message>
    <message>
        <source>Links of the cluster</source>
        <translation>集群的链路</translation>
    </message>
    <message>
        <source>W S, wheel: zoom · A D, drag: move · F: the chosen phase · Home: all · . , : next change · up, down: links · a click chooses the link&apos;s first rank</source>
        <translation>W S、滚轮：缩放 · A D、拖动：移动 · F：所选阶段 · Home：全部 · . ,：下一处变化 · 上下键：切换链路 · 单击选中该链路的第一个 rank</translation>
    </message>
    <message>
        <source>Nothing crosses a link in this step.</source>
        <translation>这一步没有任何链路流量。</translation>
    </message>
    <message>
        <source>Simulating the step</source>
        <translation>正在模拟单步</translation>
    </message>
    <message>
        <source>Strips: the share of what a link carries, over the step</source>
        <translation>色带：一步之内的链路利用率</translation>
    </message>
    <message>
        <source>Load of links</source>
        <translation>链路负载</translation>
    </message>
    <message>
        <source>Memory over the simulated step</source>
        <translation>模拟单步中的显存</translation>
    </message>
    <message>
        <source>device</source>
        <translation>设备显存</translation>
    </message>
    <message>
        <source>plans may use</source>
        <translation>方案可用</translation>
    </message>
    <message>
        <source>Memory changes where a call begins or ends, and in training where a micro-batch&apos;s forward pass begins or its backward pass ends; in between it is drawn as it is counted, at the most that a micro-batch of the token limit needs. Where several changes share a pixel the fullest is drawn, shaded down to the emptiest.</source>
        <translation>显存在一次调用开始或结束时变化，训练中还在微批的前向开始或反向结束时变化；其间按计数方式绘制，即达到 token 上限的微批所需的最大值。多个变化落在同一像素时，画占用最高的，并加阴影直到占用最低处。</translation>
    </message>
    <message>
        <source>F&amp;ullest</source>
        <translation>占用最高(&amp;U)</translation>
    </message>
    <message>
        <source>Ran&amp;k</source>
        <translation>rank(&amp;K)</translation>
    </message>
    <message>
        <source>Rank whose memory is shown</source>
        <translation>显示哪个 rank 的显存</translation>
    </message>
    <message>
        <source>The rank that holds most</source>
        <translation>显存占用最高的 rank</translation>
    </message>
    <message>
        <source>Where the rank holds most</source>
        <translation>该 rank 占用最高之处</translation>
    </message>
    <message>
        <source>The moment that is shown</source>
        <translation>显示的时刻</translation>
    </message>
    <message>
        <source>Classes of memory then</source>
        <translation>该时刻各类显存</translation>
    </message>
    <message>
        <source>W S, wheel: zoom · A D, drag: move · F: the phase · Home: all · . , : next change · Enter: look at that phase everywhere</source>
        <translation>W S、滚轮：缩放 · A D、拖动：移动 · F：该阶段 · Home：全部 · . ,：下一处变化 · Enter：所有视图都看该阶段</translation>
    </message>
    <message>
        <source>Drawn in steps, as the simulator counts: by call and micro-batch.</source>
        <translation>按模拟器的计数呈阶梯状：以调用和微批为单位。</translation>
    </message>
    <message>
        <source>, its peak</source>
        <translation>，峰值</translation>
    </message>
    <message>
        <source>Memory over time</source>
        <translation>显存随时间</translation>
    </message>
    <message>
        <source>Active sequences of the rollout&apos;s replicas</source>
        <translation>rollout 各副本的活跃序列数</translation>
    </message>
    <message>
        <source>half have ended</source>
        <translation>过半已结束</translation>
    </message>
    <message>
        <source>nine tenths</source>
        <translation>九成</translation>
    </message>
    <message>
        <source>Those that end last; %1 more are in the table.</source>
        <translation>显示最晚结束的；其余 %1 个见表格。</translation>
    </message>
    <message>
        <source>The rollout&apos;s tail</source>
        <translation>rollout 长尾</translation>
    </message>
    <message>
        <source>The moment of the generation that is shown</source>
        <translation>显示的生成时刻</translation>
    </message>
    <message>
        <source>Replicas of the rollout</source>
        <translation>rollout 的副本</translation>
    </message>
    <message>
        <source>W S, wheel: zoom · A D, drag: move · F: the tail · Home: all · . , : next change · a click chooses the replica&apos;s first rank</source>
        <translation>W S、滚轮：缩放 · A D、拖动：移动 · F：长尾 · Home：全部 · . ,：下一处变化 · 单击选中该副本的第一个 rank</translation>
    </message>
    <message>
        <source>This step generates nothing.</source>
        <translation>这一步没有生成。</translation>
    </message>
    <message>
        <source>Lanes: sequences that are active on each replica, of at most %1</source>
        <translation>各行：每个副本的活跃序列数，最多 %1</translation>
    </message>
    <message>
        <source>Rollout&apos;s tail</source>
        <translation>rollout 长尾</translation>
    </message>
    <message>
        <source>Timeline of the simulated step</source>
        <translation>模拟单步的时间线</translation>
    </message>
    <message>
        <source>%1 ranks, first %2</source>
        <translation>%1 个 rank，首个 %2</translation>
    </message>
    <message>
        <source>comm.</source>
        <translation>通信</translation>
    </message>
    <message>
        <source>Search spans by name, as &quot;decode&quot; or &quot;gather&quot;</source>
        <translation>按名称搜索片段，例如 &quot;decode&quot; 或 &quot;gather&quot;</translation>
    </message>
    <message>
        <source>Search of spans</source>
        <translation>片段搜索</translation>
    </message>
    <message>
        <source>Show &amp;all</source>
        <translation>显示全部(&amp;A)</translation>
    </message>
    <message>
        <source>Home; F shows the area or the span that is chosen</source>
        <translation>Home；按 F 显示所选区域或片段</translation>
    </message>
    <message>
        <source>The span that is chosen</source>
        <translation>所选片段</translation>
    </message>
    <message>
        <source>Totals of the area by name</source>
        <translation>区域内按名称汇总</translation>
    </message>
    <message>
        <source>%1 found</source>
        <translation>找到 %1 个</translation>
    </message>
    <message>
        <source>&lt;b&gt;%1 to %2&lt;/b&gt;, %3 lines</source>
        <translation>&lt;b&gt;%1 到 %2&lt;/b&gt;，%3 行</translation>
    </message>
    <message>
        <source>&lt;b&gt;The whole step&lt;/b&gt; of all ranks; ranks that do the same are counted once while they are folded</source>
        <translation>&lt;b&gt;整个步骤&lt;/b&gt;，所有 rank；折叠时，行为相同的 rank 只计一次</translation>
    </message>
    <message>
        <source>Timeline</source>
        <translation>时间线</translation>
    </message>
    <message>
        <source>Link</source>
        <translation>链路</translation>
    </message>
    <message>
        <source>Alike</source>
        <translation>相同数</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>类型</translation>
    </message>
    <message>
        <source>Carries</source>
        <translation>容量</translation>
    </message>
    <message>
        <source>Mean</source>
        <translation>平均</translation>
    </message>
    <message>
        <source>In use</source>
        <translation>占用时间</translation>
    </message>
    <message>
        <source>Bytes</source>
        <translation>字节数</translation>
    </message>
    <message>
        <source>Load then</source>
        <translation>此刻负载</translation>
    </message>
    <message>
        <source>%1 and %2 like it</source>
        <translation>%1 等 %2 条相同链路</translation>
    </message>
    <message>
        <source>network card</source>
        <translation>网卡</translation>
    </message>
    <message>
        <source>leaf uplink</source>
        <translation>叶交换机上行</translation>
    </message>
    <message>
        <source>uplink of a PCIe switch</source>
        <translation>PCIe 交换机上行</translation>
    </message>
    <message>
        <source>link of a socket</source>
        <translation>CPU 插槽间链路</translation>
    </message>
    <message>
        <source>port within the node</source>
        <translation>节点内端口</translation>
    </message>
    <message>
        <source>The fullest is &lt;b&gt;%1&lt;/b&gt; (%2, %3): it carries %4 % of what it could in the step, and %5 % at its peak, after %6</source>
        <translation>负载最高的是 &lt;b&gt;%1&lt;/b&gt;（%2，%3）：一步内平均利用率 %4 %，峰值 %5 %，出现在 %6</translation>
    </message>
    <message>
        <source>%1, after %2: %3 of %4</source>
        <translation>%1，%2 时：%4 的 %3</translation>
    </message>
    <message>
        <source>ranks %1</source>
        <translation>rank %1</translation>
    </message>
    <message>
        <source>&lt;b&gt;%1&lt;/b&gt;, %2 of rank %3&lt;br&gt;%4 to %5: &lt;b&gt;%6&lt;/b&gt;, in %7</source>
        <translation>&lt;b&gt;%1&lt;/b&gt;，rank %3 的 %2 流&lt;br&gt;%4 到 %5：&lt;b&gt;%6&lt;/b&gt;，属于 %7</translation>
    </message>
    <message>
        <source>&lt;br&gt;the same on %1</source>
        <translation>&lt;br&gt;%1 与之相同</translation>
    </message>
    <message>
        <source>&lt;br&gt;moves %1</source>
        <translation>&lt;br&gt;传输 %1</translation>
    </message>
    <message>
        <source>&lt;br&gt;on the critical path: the step grows with it</source>
        <translation>&lt;br&gt;在关键路径上：它变长，单步也随之变长</translation>
    </message>
    <message>
        <source>&lt;br&gt;slack %1: so much later it could end</source>
        <translation>&lt;br&gt;松弛 %1：最多可以晚这么久结束</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>Stream</source>
        <translation>流</translation>
    </message>
    <message>
        <source>Count</source>
        <translation>次数</translation>
    </message>
    <message>
        <source>Of the time</source>
        <translation>时间占比</translation>
    </message>
    <message>
        <source>step</source>
        <translation>步</translation>
    </message>
    <message>
        <source>Arrows of the reshard over the mesh</source>
        <translation>网格上的重分片箭头</translation>
    </message>
    <message>
        <source>Nothing travels.</source>
        <translation>无需传输。</translation>
    </message>
    <message>
        <source>%1 pairs: %2 within nodes (blue), %3 between nodes (orange)</source>
        <translation>%1 对：节点内 %2（蓝），节点间 %3（橙）</translation>
    </message>
    <message>
        <source>%1 pairs of nodes: %2 between them (orange); what moves within a node is not drawn</source>
        <translation>%1 对节点：节点间 %2（橙）；节点内的移动不画出</translation>
    </message>
    <message>
        <source>%1 has %2 within it: they stay on their ranks or go to others of it</source>
        <translation>%1 内有 %2：留在原 rank，或移到同节点的其他 rank</translation>
    </message>
    <message>
        <source>; the %1 largest are drawn</source>
        <translation>；只画最大的 %1 对</translation>
    </message>
    <message>
        <source>%1 sends %2, receives %3, keeps %4</source>
        <translation>%1 发送 %2，接收 %3，保留 %4</translation>
    </message>
    <message>
        <source> (fullest)</source>
        <translation>（占用最高）</translation>
    </message>
    <message>
        <source>GiB on rank %1%2</source>
        <translation>rank %1%2 上的 GiB</translation>
    </message>
    <message>
        <source>&lt;b&gt;Memory by phase&lt;/b&gt;&amp;nbsp;&amp;nbsp;stacked by</source>
        <translation>&lt;b&gt;各阶段显存&lt;/b&gt;&amp;nbsp;&amp;nbsp;堆叠方式</translation>
    </message>
    <message>
        <source>class</source>
        <translation>类别</translation>
    </message>
    <message>
        <source>role</source>
        <translation>角色</translation>
    </message>
    <message>
        <source>What the memory bars are stacked by</source>
        <translation>显存柱的堆叠方式</translation>
    </message>
    <message>
        <source>All</source>
        <translation>全部</translation>
    </message>
    <message>
        <source>&lt;b&gt;Mesh&lt;/b&gt;&amp;nbsp;&amp;nbsp;colour by</source>
        <translation>&lt;b&gt;网格&lt;/b&gt;&amp;nbsp;&amp;nbsp;着色方式</translation>
    </message>
    <message>
        <source>Meaning of the mesh&apos;s colours</source>
        <translation>网格颜色的含义</translation>
    </message>
    <message>
        <source>C and Shift+C in the picture go through them</source>
        <translation>在图中按 C 和 Shift+C 依次切换</translation>
    </message>
    <message>
        <source>Farther away</source>
        <translation>缩小</translation>
    </message>
    <message>
        <source>Farther away (-, PgUp)</source>
        <translation>缩小（-、PgUp）</translation>
    </message>
    <message>
        <source>Closer</source>
        <translation>放大</translation>
    </message>
    <message>
        <source>Closer (+, PgDn)</source>
        <translation>放大（+、PgDn）</translation>
    </message>
    <message>
        <source>The whole cluster (Home); F shows the chosen rank</source>
        <translation>整个集群（Home）；按 F 显示所选 rank</translation>
    </message>
    <message>
        <source>roles that share a rank</source>
        <translation>共用 rank 的角色</translation>
    </message>
    <message>
        <source>model replicas</source>
        <translation>模型副本</translation>
    </message>
    <message>
        <source>%1 groups</source>
        <translation>%1 组</translation>
    </message>
    <message>
        <source>memory at the peak, of the limit</source>
        <translation>显存峰值占上限的比例</translation>
    </message>
    <message>
        <source>load of the busiest link</source>
        <translation>最忙链路的负载</translation>
    </message>
    <message>
        <source>phase in the run that is followed</source>
        <translation>所跟踪运行的当前阶段</translation>
    </message>
    <message>
        <source>pods</source>
        <translation>pod</translation>
    </message>
    <message>
        <source>nodes</source>
        <translation>节点</translation>
    </message>
    <message>
        <source>seen as %1</source>
        <translation>按%1显示</translation>
    </message>
    <message>
        <source>strip: %1&amp;nbsp;&amp;nbsp; fill: %2</source>
        <translation>条带：%1&amp;nbsp;&amp;nbsp; 填充：%2</translation>
    </message>
    <message>
        <source>&amp;nbsp;&amp;nbsp; line below: %1</source>
        <translation>&amp;nbsp;&amp;nbsp; 下方横线：%1</translation>
    </message>
    <message>
        <source>0 % %1 %2 % of what plans may use, at the rank&apos;s peak</source>
        <translation>0 % %1 %2 %（rank 峰值占方案可用显存）</translation>
    </message>
    <message>
        <source>0 % %1 %2 % of what the rank&apos;s busiest link carries in a step</source>
        <translation>0 % %1 %2 %（rank 最忙链路一步内的利用率）</translation>
    </message>
    <message>
        <source>lost or failed</source>
        <translation>失联或失败</translation>
    </message>
    <message>
        <source>in no phase</source>
        <translation>不在任何阶段</translation>
    </message>
    <message>
        <source>counting the memory of every rank</source>
        <translation>正在计算每个 rank 的显存</translation>
    </message>
    <message>
        <source>simulating the step</source>
        <translation>正在模拟单步</translation>
    </message>
    <message>
        <source>no run is followed (Ctrl+R)</source>
        <translation>没有跟踪任何运行（Ctrl+R）</translation>
    </message>
    <message>
        <source>the run has %1 ranks, this plan %2</source>
        <translation>该运行有 %1 个 rank，此方案有 %2 个</translation>
    </message>
    <message>
        <source>&amp;Details</source>
        <translation>详情(&amp;D)</translation>
    </message>
    <message>
        <source>%1, details</source>
        <translation>%1，详情</translation>
    </message>
    <message>
        <source>seconds</source>
        <translation>秒</translation>
    </message>
    <message>
        <source>Pin the plan that is looked at, then another, to compare them.</source>
        <translation>把当前方案加入对比，再加入另一个，即可比较。</translation>
    </message>
    <message>
        <source>Pin another plan to see in what they differ.</source>
        <translation>再加入一个方案，查看它们的差别。</translation>
    </message>
    <message>
        <source>Unpin</source>
        <translation>移出对比</translation>
    </message>
    <message>
        <source>Compare</source>
        <translation>对比</translation>
    </message>
    <message>
        <source>Ranked plans</source>
        <translation>方案排名</translation>
    </message>
    <message>
        <source>Filter plans, as &quot;tp8&quot; or &quot;colocated&quot;</source>
        <translation>筛选方案，例如 &quot;tp8&quot; 或 &quot;共置&quot;</translation>
    </message>
    <message>
        <source>Filter of the ranked plans</source>
        <translation>方案排名筛选</translation>
    </message>
    <message>
        <source>Report of the plan and its proof</source>
        <translation>方案报告及其证明</translation>
    </message>
    <message>
        <source>Report</source>
        <translation>报告</translation>
    </message>
    <message>
        <source>&lt;b&gt;Bytes&lt;/b&gt; from row to column &amp;nbsp; of</source>
        <translation>&lt;b&gt;字节数&lt;/b&gt;，由行到列 &amp;nbsp; 范围</translation>
    </message>
    <message>
        <source>Part of the model, or step, that travels</source>
        <translation>传输的模型部分或步骤</translation>
    </message>
    <message>
        <source>Bytes from sender to receiver</source>
        <translation>发送方到接收方的字节数</translation>
    </message>
    <message>
        <source>&lt;b&gt;Methods&lt;/b&gt;, bytes of the busiest rank; total is what the rollout waits for its weights</source>
        <translation>&lt;b&gt;方法&lt;/b&gt;，字节数取最忙的 rank；总计为 rollout 等待权重的时间</translation>
    </message>
    <message>
        <source>Methods to reshard</source>
        <translation>重分片方法</translation>
    </message>
    <message>
        <source>Working out the reshard</source>
        <translation>正在计算重分片</translation>
    </message>
    <message>
        <source>score</source>
        <translation>得分</translation>
    </message>
    <message>
        <source>%1, nats</source>
        <translation>%1，nat</translation>
    </message>
    <message>
        <source>nats</source>
        <translation>nat</translation>
    </message>
    <message>
        <source>throughput</source>
        <translation>吞吐</translation>
    </message>
    <message>
        <source>rate</source>
        <translation>速率</translation>
    </message>
    <message>
        <source>received</source>
        <translation>接收</translation>
    </message>
    <message>
        <source>lower bound</source>
        <translation>下界</translation>
    </message>
    <message>
        <source>Reshard bytes, busiest rank</source>
        <translation>重分片，最忙 rank 接收的字节数</translation>
    </message>
    <message>
        <source>%1 GPUs per node instead of %2</source>
        <translation>每节点 %1 个 GPU，而不是 %2 个</translation>
    </message>
    <message>
        <source>&amp;Import a script of verl, Megatron, vLLM...</source>
        <translation>导入 verl、Megatron、vLLM 的脚本(&amp;I)...</translation>
    </message>
    <message>
        <source>Import a script</source>
        <translation>导入脚本</translation>
    </message>
    <message>
        <source>Scripts and configurations (*.sh *.yaml *.yml *.txt);;All files (*)</source>
        <translation>脚本与配置 (*.sh *.yaml *.yml *.txt);;所有文件 (*)</translation>
    </message>
    <message>
        <source>%1 was read as a plan; what was assumed:</source>
        <translation>已将 %1 读作方案；所作的假设：</translation>
    </message>
    <message>
        <source>%1:%2: %3 is ignored: %4</source>
        <translation>%1:%2：%3 被忽略：%4</translation>
    </message>
    <message>
        <source>%1 is no run: it has neither metrics.jsonl nor ranks nor plan.json</source>
        <translation>%1 不是运行：其中没有 metrics.jsonl、ranks 或 plan.json</translation>
    </message>
    <message>
        <source>Cancelled: %1</source>
        <translation>已取消：%1</translation>
    </message>
    <message>
        <source>&lt;b&gt;%1 a step&lt;/b&gt; instead of %2: %3 less, fits with %4 %</source>
        <translation>&lt;b&gt;每步 %1&lt;/b&gt;，原为 %2：减少 %3，显存够用的概率 %4 %</translation>
    </message>
    <message>
        <source>A step takes %1 as measured, %2 by the learned constants.</source>
        <translation>每步实测 %1，按重新校准的常数预测为 %2。</translation>
    </message>
    <message>
        <source>Save plan and calibration...</source>
        <translation>保存方案与校准...</translation>
    </message>
    <message>
        <source>No other setting is quicker and fits.</source>
        <translation>没有其他设置更快且显存够用。</translation>
    </message>
    <message>
        <source>Command of change %1</source>
        <translation>第 %1 项改动的命令</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Copy the command; the two files that it reads are saved before</source>
        <translation>复制命令；它要读取的两个文件会先保存</translation>
    </message>
    <message>
        <source>Copy the command of change %1</source>
        <translation>复制第 %1 项改动的命令</translation>
    </message>
    <message>
        <source>Plan with it</source>
        <translation>按它规划</translation>
    </message>
    <message>
        <source>Show this plan on the page Explore, by the learned constants</source>
        <translation>按重新校准的常数，在“探索”页显示这个方案</translation>
    </message>
    <message>
        <source>Plan with change %1</source>
        <translation>按第 %1 项改动规划</translation>
    </message>
    <message>
        <source>Copied the command of change %1; its files are in %2</source>
        <translation>已复制第 %1 项改动的命令；它的文件在 %2</translation>
    </message>
    <message>
        <source>Whether the constants are worth using</source>
        <translation>这些常数是否值得使用</translation>
    </message>
    <message>
        <source>&amp;Cancel what is worked out</source>
        <translation>取消正在计算的内容(&amp;C)</translation>
    </message>
    <message>
        <source>nothing is worked out</source>
        <translation>没有正在计算的内容</translation>
    </message>
    <message>
        <source>Here again: what a window had pinned and compared that did not end well</source>
        <translation>已恢复：上次未正常结束的窗口中加入对比的方案和运行</translation>
    </message>
    <message>
        <source>Counting the memory of every rank</source>
        <translation>正在统计每个 rank 的显存</translation>
    </message>
    <message>
        <source>Looking for the best plans on fewer GPUs</source>
        <translation>正在寻找使用更少 GPU 的最优方案</translation>
    </message>
    <message>
        <source>Learning from the run</source>
        <translation>正在从运行中重新校准</translation>
    </message>
    <message>
        <source>Go on</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>What is worked out</source>
        <translation>正在计算的内容</translation>
    </message>
    <message>
        <source>Esc; ends this work</source>
        <translation>Esc；结束这项计算</translation>
    </message>
    <message>
        <source>%1: %2 s</source>
        <translation>%1：%2 s</translation>
    </message>
    <message>
        <source>a micro-batch&apos;s forward pass; micro-batches count from 0</source>
        <translation>一个微批的前向传播；微批从 0 开始编号</translation>
    </message>
    <message>
        <source>a micro-batch&apos;s backward pass; micro-batches count from 0</source>
        <translation>一个微批的反向传播；微批从 0 开始编号</translation>
    </message>
    <message>
        <source>the engine&apos;s software around the call, on the hosts&apos; processors: handing out the batch&apos;s sequences, and in adv the advantages</source>
        <translation>调用前后引擎软件在主机处理器上的开销：分发批次中的序列，在 adv 中还包括计算优势</translation>
    </message>
    <message>
        <source>cancelled</source>
        <translation>已取消</translation>
    </message>
    <message>
        <source>Reward (mean score)</source>
        <translation>奖励（平均得分）</translation>
    </message>
    <message>
        <source>KL divergence</source>
        <translation>KL 散度</translation>
    </message>
    <message>
        <source>Throughput</source>
        <translation>吞吐</translation>
    </message>
    <message>
        <source>Reshard rate</source>
        <translation>重分片速率</translation>
    </message>
    <message>
        <source>No plan beside this run: nothing to compare with</source>
        <translation>该运行没有对应的方案：无从比较</translation>
    </message>
    <message>
        <source>Predicted beside measured, by phase</source>
        <translation>预测与实测对照，按阶段</translation>
    </message>
    <message>
        <source>Prediction and measurement</source>
        <translation>预测与实测</translation>
    </message>
    <message>
        <source>Profile of rules</source>
        <translation>规则集</translation>
    </message>
    <message>
        <source>&lt;b&gt;Rules&lt;/b&gt;, judged on the last step, of</source>
        <translation>&lt;b&gt;规则&lt;/b&gt;，按最后一步判断，规则集</translation>
    </message>
    <message>
        <source>&lt;b&gt;Predicted and measured&lt;/b&gt;, mean over the steps after the warm-up</source>
        <translation>&lt;b&gt;预测与实测&lt;/b&gt;，预热之后各步的平均</translation>
    </message>
    <message>
        <source>&lt;b&gt;Ranks&lt;/b&gt;</source>
        <translation>&lt;b&gt;rank&lt;/b&gt;</translation>
    </message>
    <message>
        <source>Ranks of the run</source>
        <translation>运行的 rank</translation>
    </message>
    <message>
        <source>Plans as points</source>
        <translation>以点表示的方案</translation>
    </message>
    <message>
        <source>No plan states both.</source>
        <translation>没有方案同时给出这两项。</translation>
    </message>
    <message>
        <source>another plan</source>
        <translation>其他方案</translation>
    </message>
    <message>
        <source>no plan here beats it in both</source>
        <translation>两项都没有更好的方案</translation>
    </message>
    <message>
        <source>row 1, the answer</source>
        <translation>第 1 行，即结论</translation>
    </message>
    <message>
        <source>Horizontal axis</source>
        <translation>横轴</translation>
    </message>
    <message>
        <source>Vertical axis</source>
        <translation>纵轴</translation>
    </message>
    <message>
        <source>against</source>
        <translation>相对于</translation>
    </message>
    <message>
        <source>The plan that is pointed to</source>
        <translation>指向的方案</translation>
    </message>
    <message>
        <source>looking for plans on fewer GPUs</source>
        <translation>正在寻找 GPU 更少的方案</translation>
    </message>
    <message>
        <source>planning each in full, for its memory</source>
        <translation>正在完整规划各方案以得到显存</translation>
    </message>
    <message>
        <source>Trade-offs</source>
        <translation>权衡</translation>
    </message>
    <message>
        <source>The plan was edited since its search, and its constants are not here: what it predicts is not its own.</source>
        <translation>该方案在搜索后被修改，且找不到其常数：其中的预测并非它自己的。</translation>
    </message>
    <message>
        <source>The plan was edited since its search: its file says %1 a step, and it takes %2.</source>
        <translation>该方案在搜索后被修改：文件写明每步 %1，实际为 %2。</translation>
    </message>
    <message>
        <source>Export a job</source>
        <translation>导出作业</translation>
    </message>
    <message>
        <source>For whom</source>
        <translation>目标</translation>
    </message>
    <message>
        <source>Folder</source>
        <translation>文件夹</translation>
    </message>
    <message>
        <source>Files, or why there are none</source>
        <translation>文件，或无法导出的原因</translation>
    </message>
    <message>
        <source>&amp;Browse...</source>
        <translation>浏览(&amp;B)...</translation>
    </message>
    <message>
        <source>For &amp;whom</source>
        <translation>目标(&amp;W)</translation>
    </message>
    <message>
        <source>&amp;Write</source>
        <translation>写入(&amp;W)</translation>
    </message>
    <message>
        <source>Folder of the job</source>
        <translation>作业文件夹</translation>
    </message>
    <message>
        <source>Export &amp;job for verl, Megatron, vLLM, Slurm...</source>
        <translation>导出作业(&amp;J)：verl、Megatron、vLLM、Slurm...</translation>
    </message>
    <message>
        <source>None of these %1 plans. A degree that is fixed in the question is searched for among all.</source>
        <translation>这 %1 个方案中没有符合的。在问题中固定某个并行度，即可在全部方案中搜索。</translation>
    </message>
    <message>
        <source>no other plan with what is fixed</source>
        <translation>在所指定的设置下没有其他方案</translation>
    </message>
    <message>
        <source>Margin: no plan on as few GPUs; errors of the predicted times do not change that.</source>
        <translation>裕度：没有方案只用这么少的 GPU；预测时间的误差不会改变这一点。</translation>
    </message>
    <message>
        <source>%1.</source>
        <translation>%1。</translation>
    </message>
    <message>
        <source>more than 1000</source>
        <translation>1000 以上</translation>
    </message>
    <message>
        <source>Only plans with %1 were searched; without that another may be better.</source>
        <translation>只搜索了满足 %1 的方案；不作此限制时可能有更好的方案。</translation>
    </message>
    <message>
        <source>Left open: %1.</source>
        <translation>未搜索的部分：%1。</translation>
    </message>
    <message>
        <source>%1 nats</source>
        <translation>%1 nat</translation>
    </message>
    <message>
        <source>%1 x predicted</source>
        <translation>预测值的 %1 倍</translation>
    </message>
    <message>
        <source>%1 of the step</source>
        <translation>单步时间的 %1 倍</translation>
    </message>
    <message>
        <source>The plan that is shown is in no file.</source>
        <translation>当前显示的方案尚未保存到文件。</translation>
    </message>
    <message>
        <source>The question and the pinned plans are in no file; a project has both.</source>
        <translation>问题和加入对比的方案尚未保存到文件；项目可以同时保存两者。</translation>
    </message>
    <message>
        <source>%1 lacks what has changed since it was saved.</source>
        <translation>%1 中没有上次保存之后的改动。</translation>
    </message>
    <message>
        <source>Close the window</source>
        <translation>关闭窗口</translation>
    </message>
    <message>
        <source>&amp;Save</source>
        <translation>保存(&amp;S)</translation>
    </message>
    <message>
        <source>&amp;Discard</source>
        <translation>不保存(&amp;D)</translation>
    </message>
    <message>
        <source>What the loads count</source>
        <translation>负载统计了什么</translation>
    </message>
    <message>
        <source>layers (tensor, context, expert parallelism)</source>
        <translation>层内通信（张量、上下文、专家并行）</translation>
    </message>
    <message>
        <source>exchanges within passes</source>
        <translation>前向和反向计算中的通信</translation>
    </message>
    <message>
        <source>Counted: %1.</source>
        <translation>已统计：%1。</translation>
    </message>
    <message>
        <source>Ranks exchange nothing else.</source>
        <translation>各 rank 之间没有其他通信。</translation>
    </message>
    <message>
        <source>&lt;b&gt;Not counted&lt;/b&gt;: %1.</source>
        <translation>&lt;b&gt;未统计&lt;/b&gt;：%1。</translation>
    </message>
    <message>
        <source>colocated</source>
        <translation>共置</translation>
    </message>
    <message>
        <source>colocated on %1, another layout</source>
        <translation>共置于 %1，另一种并行布局</translation>
    </message>
    <message>
        <source>colocated, another layout</source>
        <translation>共置，另一种并行布局</translation>
    </message>
    <message>
        <source>%1, another layout</source>
        <translation>%1，另一种并行布局</translation>
    </message>
    <message>
        <source>colocated on %1, other GPU types</source>
        <translation>共置于 %1，另一种 GPU 型号</translation>
    </message>
    <message>
        <source>%1, other GPU types</source>
        <translation>%1，另一种 GPU 型号</translation>
    </message>
    <message>
        <source>colocated on %1</source>
        <translation>共置于 %1</translation>
    </message>
    <message>
        <source>more than %1 %</source>
        <translation>高于 %1 %</translation>
    </message>
    <message>
        <source>use %1 nodes (%2 GPUs)</source>
        <translation>使用 %1 个节点（%2 张 GPU）</translation>
    </message>
    <message>
        <source>use GPUs with %1 of memory</source>
        <translation>使用显存为 %1 的 GPU</translation>
    </message>
    <message>
        <source>leave out %1, but nothing fits then either</source>
        <translation>去掉 %1，但仍没有可行方案</translation>
    </message>
    <message>
        <source>leave out %1</source>
        <translation>去掉 %1</translation>
    </message>
    <message>
        <source>%1=%2 instead of %3=%4</source>
        <translation>用 %1=%2 代替 %3=%4</translation>
    </message>
    <message>
        <source>rank %1 of a pool on %2 in phase %3 (%4): needs %5 of %6, %7 too much; largest part %8, %9</source>
        <translation>%2 资源池中的 rank %1 在 %3 阶段（%4）：需要 %5，上限 %6，超出 %7；最大的一类是 %8，%9</translation>
    </message>
    <message>
        <source>rank %1 in phase %2 (%3): needs %4 of %5, %6 too much; largest part %7, %8</source>
        <translation>rank %1 在 %2 阶段（%3）：需要 %4，上限 %5，超出 %6；最大的一类是 %7，%8</translation>
    </message>
    <message>
        <source>no layout of the %1 on up to %2 GPUs satisfies the fixed settings, the model&apos;s heads and layers and a dp that divides its batch</source>
        <translation>在至多 %2 张 GPU 上，%1 没有任何布局能同时满足所指定的设置、模型的注意力头数和层数，以及能整除批大小的 dp</translation>
    </message>
    <message>
        <source>every role fits alone, but no placement and split of %1 GPUs that the settings allow holds them all; %2</source>
        <translation>每个角色单独放得下，但在所允许的设置下，%1 张 GPU 的任何放置和划分都容不下全部角色；%2</translation>
    </message>
    <message>
        <source>every role fits alone, but no placement and split of %1 GPUs that the settings allow holds them all</source>
        <translation>每个角色单独放得下，但在所允许的设置下，%1 张 GPU 的任何放置和划分都容不下全部角色</translation>
    </message>
    <message>
        <source>%1 and %2: placement &apos;%3&apos; has both roles in one pool, whose GPUs are all of the types that one name says</source>
        <translation>%1 与 %2：放置 &apos;%3&apos; 把两个角色放在同一个资源池，池中的 GPU 只能是同一个名称所指的型号</translation>
    </message>
    <message>
        <source>%1: the planner&apos;s blocks of GPUs divide a node of %2 (%3) or are whole nodes of the %4</source>
        <translation>%1：规划器的 GPU 块要么整除每节点的 %2 张（%3），要么是 %4 个节点中的整节点</translation>
    </message>
    <message>
        <source>%1 does not divide a node of %2 GPUs, which tensor parallelism stays in</source>
        <translation>%1 不能整除每节点的 %2 张 GPU，而张量并行不跨节点</translation>
    </message>
    <message>
        <source>%1 needs more than the %2 GPUs that the cluster has</source>
        <translation>%1 需要的 GPU 多于集群的 %2 张</translation>
    </message>
    <message>
        <source>%1 needs more than the %2 GPUs that %3 leaves it</source>
        <translation>%1 需要的 GPU 多于 %3 留给它的 %2 张</translation>
    </message>
    <message>
        <source>%1: %2 GPUs are no multiple of %3</source>
        <translation>%1：%2 张 GPU 不是 %3 的倍数</translation>
    </message>
    <message>
        <source>%1: the model has only %2 attention heads</source>
        <translation>%1：模型只有 %2 个注意力头</translation>
    </message>
    <message>
        <source>%1: the engine cuts the model&apos;s %2 attention heads (%3 of keys and values) and its MLP of %4 columns into equal parts, and they have no %5</source>
        <translation>%1：引擎要把模型的 %2 个注意力头（其中键值头 %3 个）和 %4 列的 MLP 等分，无法分成 %5 份</translation>
    </message>
    <message>
        <source>%1: the model has only %2 layers, and a pipeline stage needs one at least</source>
        <translation>%1：模型只有 %2 层，而每个流水线阶段至少需要一层</translation>
    </message>
    <message>
        <source>%1: plans have at most %2 virtual stages on a rank</source>
        <translation>%1：方案中每个 rank 最多 %2 个虚拟阶段</translation>
    </message>
    <message>
        <source>%1: a pipeline of one stage has no virtual ones</source>
        <translation>%1：只有一个阶段的流水线没有虚拟阶段</translation>
    </message>
    <message>
        <source>%1: the engine runs virtual stages on a multiple of pp micro-batches, which the %2 sequences of a replica do not fill</source>
        <translation>%1：引擎按 pp 的整数倍个微批运行虚拟阶段，而一个副本的 %2 条序列填不满</translation>
    </message>
    <message>
        <source>%1: virtual stages have equally many layers, and the model&apos;s %2 are no multiple of %3</source>
        <translation>%1：各虚拟阶段的层数相同，而模型的 %2 层不是 %3 的倍数</translation>
    </message>
    <message>
        <source>%1: a step has only %2 prompts, and each replica needs one at least</source>
        <translation>%1：一步只有 %2 个提示，而每个副本至少需要一个</translation>
    </message>
    <message>
        <source>%1: a step has only %2 sequences, and each replica needs one at least</source>
        <translation>%1：一步只有 %2 条序列，而每个副本至少需要一条</translation>
    </message>
    <message>
        <source>%1 does not divide the %2 sequences of a mini-batch</source>
        <translation>%1 不能整除一个小批的 %2 条序列</translation>
    </message>
    <message>
        <source>%1 does not divide the %2 sequences of a step</source>
        <translation>%1 不能整除一步的 %2 条序列</translation>
    </message>
    <message>
        <source>%1 is beyond engine &apos;%2&apos;, which has %3 there; plan for engine %4</source>
        <translation>%1 超出引擎 &apos;%2&apos; 的能力，它在此处只有 %3；可改用引擎 %4</translation>
    </message>
    <message>
        <source>%1 is beyond engine &apos;%2&apos;, which has %3 there</source>
        <translation>%1 超出引擎 &apos;%2&apos; 的能力，它在此处只有 %3</translation>
    </message>
    <message>
        <source>phases that the run does not time lie in it: %1 (%2 s predicted)</source>
        <translation>其中包含运行没有计时的阶段：%1（预测 %2 s）</translation>
    </message>
    <message>
        <source>responses of %1 tokens where the plan has %2, prompts of %3 tokens where the plan has %4: with those %5 s are predicted</source>
        <translation>回复为 %1 个 token，方案为 %2；提示为 %3 个 token，方案为 %4：按实际长度预测为 %5 s</translation>
    </message>
    <message>
        <source>responses of %1 tokens where the plan has %2: with those %3 s are predicted</source>
        <translation>回复为 %1 个 token，方案为 %2：按实际长度预测为 %3 s</translation>
    </message>
    <message>
        <source>prompts of %1 tokens where the plan has %2: with those %3 s are predicted</source>
        <translation>提示为 %1 个 token，方案为 %2：按实际长度预测为 %3 s</translation>
    </message>
    <message>
        <source>responses of another spread than the plan&apos;s: with those %1 s are predicted</source>
        <translation>回复长度的分布与方案不同：按实际分布预测为 %1 s</translation>
    </message>
    <message>
        <source>within what the constants leave open, most of all %1: tessera learn or calibrate narrows it</source>
        <translation>在校准常数的误差之内，主要来自 %1：tessera learn 或 calibrate 可以缩小误差</translation>
    </message>
    <message>
        <source>the engine&apos;s software hands weights over (%1 s of the prediction), not the links: tessera learn fits it (handover)</source>
        <translation>权重由引擎的软件交接（预测中占 %1 s），与链路无关：tessera learn 会拟合它（handover）</translation>
    </message>
    <message>
        <source>the allocator had reserved %1% of the device: it gives blocks back and asks again</source>
        <translation>显存分配器已保留设备显存的 %1%：它在反复归还和申请显存块</translation>
    </message>
    <message>
        <source>communication is %1% of the prediction: links slower than the calibration says, or ranks that wait for one another</source>
        <translation>通信占预测的 %1%：链路比校准值慢，或各 rank 互相等待</translation>
    </message>
    <message>
        <source>ranks share the processors with one another and with whatever else runs there</source>
        <translation>各 rank 彼此共享处理器，也与其上运行的其他程序共享</translation>
    </message>
    <message>
        <source>kernels or host are slower than the constants say; it depends most on %1 (%2 s a per cent): tessera learn fits it</source>
        <translation>内核或主机比校准常数慢；影响最大的是 %1（每百分之一 %2 s）：tessera learn 会拟合它</translation>
    </message>
    <message>
        <source>kernels or host are faster than the constants say; it depends most on %1 (%2 s a per cent): tessera learn fits it</source>
        <translation>内核或主机比校准常数快；影响最大的是 %1（每百分之一 %2 s）：tessera learn 会拟合它</translation>
    </message>
    <message>
        <source>kernels or host are slower than the constants say, none of which moves it</source>
        <translation>内核或主机比校准常数慢，没有哪个常数影响它</translation>
    </message>
    <message>
        <source>kernels or host are faster than the constants say, none of which moves it</source>
        <translation>内核或主机比校准常数快，没有哪个常数影响它</translation>
    </message>
    <message>
        <source>reshard %1 -&gt; %2</source>
        <translation>重分片 %1 -&gt; %2</translation>
    </message>
    <message>
        <source>NOT EQUAL in 1 step</source>
        <translation>有 1 步不相等</translation>
    </message>
    <message>
        <source>NOT EQUAL in %1 steps</source>
        <translation>有 %1 步不相等</translation>
    </message>
    <message>
        <source>MORE in 1 step</source>
        <translation>有 1 步超出</translation>
    </message>
    <message>
        <source>MORE in %1 steps</source>
        <translation>有 %1 步超出</translation>
    </message>
    <message>
        <source>GPU %1, out</source>
        <translation>GPU %1，发出</translation>
    </message>
    <message>
        <source>GPU %1, in</source>
        <translation>GPU %1，接收</translation>
    </message>
    <message>
        <source>node %1, card %2, out</source>
        <translation>节点 %1，网卡 %2，发出</translation>
    </message>
    <message>
        <source>node %1, card %2, in</source>
        <translation>节点 %1，网卡 %2，接收</translation>
    </message>
    <message>
        <source>node %1, switch %2, out</source>
        <translation>节点 %1，PCIe 交换机 %2，发出</translation>
    </message>
    <message>
        <source>node %1, switch %2, in</source>
        <translation>节点 %1，PCIe 交换机 %2，接收</translation>
    </message>
    <message>
        <source>node %1, socket %2, out</source>
        <translation>节点 %1，CPU 插槽 %2，发出</translation>
    </message>
    <message>
        <source>node %1, socket %2, in</source>
        <translation>节点 %1，CPU 插槽 %2，接收</translation>
    </message>
    <message>
        <source>leaf %1, rail %2, out</source>
        <translation>叶交换机 %1，轨道 %2，发出</translation>
    </message>
    <message>
        <source>leaf %1, rail %2, in</source>
        <translation>叶交换机 %1，轨道 %2，接收</translation>
    </message>
    <message>
        <source>leaf %1, out</source>
        <translation>叶交换机 %1，发出</translation>
    </message>
    <message>
        <source>leaf %1, in</source>
        <translation>叶交换机 %1，接收</translation>
    </message>
    <message>
        <source>This answers an earlier question.</source>
        <translation>这里回答的是之前的问题。</translation>
    </message>
    <message>
        <source>not from a search</source>
        <translation>并非由搜索得到</translation>
    </message>
    <message>
        <source>edited since its search</source>
        <translation>在搜索之后被修改过</translation>
    </message>
    <message>
        <source>holds</source>
        <translation>满足</translation>
    </message>
    <message>
        <source>violated</source>
        <translation>不满足</translation>
    </message>
    <message>
        <source>unreachable</source>
        <translation>不可达</translation>
    </message>
    <message>
        <source>unknown</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>off</source>
        <translation>未启用</translation>
    </message>
    <message>
        <source>confirmed</source>
        <translation>已证实</translation>
    </message>
    <message>
        <source>conflicting</source>
        <translation>说法不一</translation>
    </message>
    <message>
        <source>refuted</source>
        <translation>已被否定</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>无</translation>
    </message>
    <message>
        <source>loading beside the next gather</source>
        <translation>加载与下一次收集重叠</translation>
    </message>
    <message>
        <source>gathering beside the broadcast</source>
        <translation>收集与广播重叠</translation>
    </message>
    <message>
        <source>any kernels, the optimizer&apos;s too</source>
        <translation>任意内核，包括优化器的</translation>
    </message>
    <message>
        <source>any kernels</source>
        <translation>任意内核</translation>
    </message>
    <message>
        <source>needs a trainer cut by tp and pp alone, by multiples of the rollout&apos;s</source>
        <translation>要求训练只按 tp 和 pp 切分，且是 rollout 的整数倍</translation>
    </message>
    <message>
        <source>needs the trainer&apos;s GPUs</source>
        <translation>要求与训练使用相同的 GPU</translation>
    </message>
    <message>
        <source>DeepSpeed-Chat: trained by ZeRO-3 over all GPUs, each gathers the model</source>
        <translation>DeepSpeed-Chat：用 ZeRO-3 在全部 GPU 上训练，每张 GPU 收集整个模型</translation>
    </message>
    <message>
        <source>HybridFlow-V: each gathers the model in its tensor x pipeline group</source>
        <translation>HybridFlow-V：每张 GPU 在其张量 x 流水线组内收集模型</translation>
    </message>
    <message>
        <source>HybridFlow: strided groups, micro data-parallel gathers</source>
        <translation>HybridFlow：跨步分组，在微数据并行组内收集</translation>
    </message>
    <message>
        <source>FSDP&apos;s full_tensor of fp32 shards, tensor by tensor</source>
        <translation>FSDP 的 full_tensor，由 fp32 分片逐张量收集</translation>
    </message>
    <message>
        <source>gathered and loaded tensor by tensor, in the weights&apos; type</source>
        <translation>按权重的数据类型逐张量收集并加载</translation>
    </message>
    <message>
        <source>verl: gathered whole, packed into a bucket, opened by CUDA IPC</source>
        <translation>verl：整体收集，装入桶中，经 CUDA IPC 打开</translation>
    </message>
    <message>
        <source>NeMo RL: gathered whole into the halves of a buffer</source>
        <translation>NeMo RL：整体收集到缓冲区的两半中</translation>
    </message>
    <message>
        <source>verl&apos;s checkpoint engine: to GPUs of the rollout&apos;s own</source>
        <translation>verl 的检查点引擎：传到 rollout 独占的 GPU</translation>
    </message>
    <message>
        <source>Tessera: what is missing, read by copy engines</source>
        <translation>Tessera：只传缺少的部分，由拷贝引擎读取</translation>
    </message>
    <message>
        <source>Tessera: what is missing, through NCCL&apos;s windows</source>
        <translation>Tessera：只传缺少的部分，经由 NCCL 窗口</translation>
    </message>
    <message>
        <source>Tessera: what is missing, in messages</source>
        <translation>Tessera：只传缺少的部分，以消息方式</translation>
    </message>
    <message>
        <source>gradients</source>
        <translation>梯度</translation>
    </message>
    <message>
        <source>parameters</source>
        <translation>参数</translation>
    </message>
    <message>
        <source>shards</source>
        <translation>分片</translation>
    </message>
    <message>
        <source>stages</source>
        <translation>流水线激活</translation>
    </message>
    <message>
        <source>weights</source>
        <translation>权重</translation>
    </message>
    <message>
        <source>host</source>
        <translation>主机内存拷贝</translation>
    </message>
    <message>
        <source>phases</source>
        <translation>阶段</translation>
    </message>
    <message>
        <source>compute</source>
        <translation>计算</translation>
    </message>
    <message>
        <source>communication</source>
        <translation>通信</translation>
    </message>
    <message>
        <source>copy</source>
        <translation>拷贝</translation>
    </message>
    <message>
        <source>master_weights</source>
        <translation>主权重</translation>
    </message>
    <message>
        <source>optimizer</source>
        <translation>优化器状态</translation>
    </message>
    <message>
        <source>activations</source>
        <translation>激活</translation>
    </message>
    <message>
        <source>logits</source>
        <translation>logits 峰值</translation>
    </message>
    <message>
        <source>kv_cache</source>
        <translation>KV 缓存</translation>
    </message>
    <message>
        <source>gathered</source>
        <translation>已收集的权重</translation>
    </message>
    <message>
        <source>reshard</source>
        <translation>重分片</translation>
    </message>
    <message>
        <source>workspace</source>
        <translation>工作区</translation>
    </message>
    <message>
        <source>reserve</source>
        <translation>预留</translation>
    </message>
    <message>
        <source>within</source>
        <translation>在范围内</translation>
    </message>
    <message>
        <source>equal</source>
        <translation>相等</translation>
    </message>
    <message>
        <source>between the calls: data, logging, validation, saving; no call of the plan&apos;s</source>
        <translation>在各调用之间：数据、日志、验证、保存；不属于方案中的任何调用</translation>
    </message>
    <message>
        <source>it runs beside the trainer: the log has the wait for it, not its time</source>
        <translation>它与训练并行：日志记录的是等待它的时间，而不是它的用时</translation>
    </message>
    <message>
        <source>the plan has no price for the user&apos;s reward functions</source>
        <translation>方案没有为用户自己的奖励函数计价</translation>
    </message>
    <message>
        <source>the plan has no price for it</source>
        <translation>方案没有为它计价</translation>
    </message>
    <message>
        <source>no more than the steps differ among themselves: more steps tell</source>
        <translation>没有超出各步之间的波动：更多的步才能判断</translation>
    </message>
    <message>
        <source>verl with FSDP</source>
        <translation>使用 FSDP 的 verl</translation>
    </message>
    <message>
        <source>verl with Megatron</source>
        <translation>使用 Megatron 的 verl</translation>
    </message>
    <message>
        <source>verl with VeOmni</source>
        <translation>使用 VeOmni 的 verl</translation>
    </message>
    <message>
        <source>verl with torchtitan</source>
        <translation>使用 torchtitan 的 verl</translation>
    </message>
    <message>
        <source>the verl job on a Ray cluster</source>
        <translation>Ray 集群上的 verl 作业</translation>
    </message>
    <message>
        <source>verl on Ray under srun</source>
        <translation>用 srun 启动的 Ray 上的 verl</translation>
    </message>
    <message>
        <source>verl as a KubeRay RayJob</source>
        <translation>作为 KubeRay RayJob 的 verl</translation>
    </message>
    <message>
        <source>Megatron-LM&apos;s arguments</source>
        <translation>Megatron-LM 的参数</translation>
    </message>
    <message>
        <source>Tessera&apos;s executor under srun</source>
        <translation>用 srun 启动 Tessera 执行器</translation>
    </message>
    <message>
        <source>Tessera&apos;s executor as a Kubeflow TrainJob</source>
        <translation>作为 Kubeflow TrainJob 的 Tessera 执行器</translation>
    </message>
    <message>
        <source>Tessera&apos;s executor under torchrun</source>
        <translation>用 torchrun 启动 Tessera 执行器</translation>
    </message>
    <message>
        <source>one vLLM server of the rollout</source>
        <translation>rollout 的一个 vLLM 服务</translation>
    </message>
    <message>
        <source>one SGLang server of the rollout</source>
        <translation>rollout 的一个 SGLang 服务</translation>
    </message>
    <message>
        <source>token limits above 128 Ki a rank or between quarters of a longest sequence; context parallelism in parts below 2,048 tokens or of no power of two where more replicas divide the batch, and of no power of two on more than 64 GPUs; long sequences in tp without sequence parallelism</source>
        <translation>每个 rank 超过 128 Ki、或不是最长序列四分之一整数倍的 token 上限；在更多副本能整除批大小时，每份不足 2,048 个 token 或不是二的幂的上下文并行，以及 64 张以上 GPU 时不是二的幂的上下文并行；tp 中不用序列并行的长序列</translation>
    </message>
    <message>
        <source>compare the phases (tessera compare): the one that grew most is the cause</source>
        <translation>逐阶段对比（tessera compare）：增长最多的阶段就是原因</translation>
    </message>
    <message>
        <source>look at response_length/mean and max: longer responses than the workload states need a new plan</source>
        <translation>查看 response_length/mean 和 max：回复比负载中写的更长时需要重新规划</translation>
    </message>
    <message>
        <source>calibrate on this machine, then plan again; a clock limit or a slow node shows in every rank&apos;s trace</source>
        <translation>在这台机器上校准后重新规划；频率限制或慢节点会体现在每个 rank 的 trace 中</translation>
    </message>
    <message>
        <source>check that its micro-batches hold as many tokens as the plan says</source>
        <translation>检查它的微批是否装有方案所写数量的 token</translation>
    </message>
    <message>
        <source>barriers and small tensors cost what bytes do not show: see the transport and bucket of the run&apos;s log line</source>
        <translation>屏障和小张量的开销不体现在字节数上：请看运行日志中的传输方式和桶大小</translation>
    </message>
    <message>
        <source>a reshard that moves more than the plan says was made by another plan: stop and make the plan again</source>
        <translation>重分片传输得比方案多，说明它来自另一个方案：请停止并重新制定方案</translation>
    </message>
    <message>
        <source>as for the step</source>
        <translation>与单步时间的建议相同</translation>
    </message>
    <message>
        <source>as for the update</source>
        <translation>与更新阶段的建议相同</translation>
    </message>
    <message>
        <source>a growing peak is fragmentation or a leak: watch it over steps; take the ladder of tessera explain --advice</source>
        <translation>峰值持续增长是碎片或泄漏：请逐步观察，并参照 tessera explain --advice 的建议逐级调整</translation>
    </message>
    <message>
        <source>one rung of the ladder of tessera explain --advice: lower rollout TP with more micro-DP, fewer sequences at once</source>
        <translation>按 tessera explain --advice 的建议调整一级：降低 rollout TP 并增加微 DP，减少同时生成的序列数</translation>
    </message>
    <message>
        <source>a loss or a gradient is NaN or infinite: go on from an earlier checkpoint (trainer.resume_from_path) with a lower learning rate</source>
        <translation>损失或梯度为 NaN 或无穷：请从更早的检查点（trainer.resume_from_path）以更低的学习率继续</translation>
    </message>
    <message>
        <source>a gradient was not finite and its update was left out: where it happens again, lower the learning rate</source>
        <translation>有一次梯度不是有限值，其更新被跳过：如再次发生，请降低学习率</translation>
    </message>
    <message>
        <source>a 7B reshard within NVLink can reach it; check transport and bucket</source>
        <translation>NVLink 内的 7B 重分片可以达到；请检查传输方式和桶大小</translation>
    </message>
    <message>
        <source>no target: the lower bound alone may exceed it</source>
        <translation>不宜作为目标：仅下界就可能超过它</translation>
    </message>
    <message>
        <source>no target: the ratio follows from the two layouts</source>
        <translation>不宜作为目标：该比例由两种并行布局决定</translation>
    </message>
    <message>
        <source>minimal instead of full gather; train and generate on the same nodes</source>
        <translation>只传缺少的部分而不是整体收集；在相同节点上训练和生成</translation>
    </message>
    <message>
        <source>a rollout TP closer to the training TP keeps more in place</source>
        <translation>rollout TP 越接近训练 TP，留在原处的越多</translation>
    </message>
    <message>
        <source>no target: the fastest GEMM of an H200 runs at 80 % of its peak</source>
        <translation>不宜作为目标：H200 最快的 GEMM 也只达到峰值的 80 %</translation>
    </message>
    <message>
        <source>below every published run: micro-batches too small, or recomputation and offload that are not needed</source>
        <translation>低于所有公开的运行：微批太小，或使用了不必要的重计算和卸载</translation>
    </message>
    <message>
        <source>keep TP inside a node, overlap gradients</source>
        <translation>让 TP 不跨节点，并重叠梯度通信</translation>
    </message>
    <message>
        <source>no target without a size</source>
        <translation>不给出规模就不宜作为目标</translation>
    </message>
    <message>
        <source>below it: generation dominates; see gen/share</source>
        <translation>低于此值：生成占主导；请看 gen/share</translation>
    </message>
    <message>
        <source>depends on model and length: use the plan&apos;s own prediction</source>
        <translation>取决于模型和长度：请用方案自己的预测</translation>
    </message>
    <message>
        <source>no target: watch MFU and idle time of the trace</source>
        <translation>不宜作为目标：请看 MFU 和 trace 中的空闲时间</translation>
    </message>
    <message>
        <source>pause and look at samples.jsonl; lower the learning rate</source>
        <translation>暂停并查看 samples.jsonl；降低学习率</translation>
    </message>
    <message>
        <source>reset the learning rate to its last good value</source>
        <translation>把学习率恢复到上一个正常的值</translation>
    </message>
    <message>
        <source>a collapsing variance is a finished or hacked task, a growing one an unstable run</source>
        <translation>方差塌缩说明任务已学完或奖励被钻空子，方差增长说明运行不稳定</translation>
    </message>
    <message>
        <source>no target: it follows from the layout</source>
        <translation>不宜作为目标：它由并行布局决定</translation>
    </message>
    <message>
        <source>tessera explain --advice prices each rung: lower rollout TP with more micro-DP, offload, recompute</source>
        <translation>tessera explain --advice 会为每一级计价：降低 rollout TP 并增加微 DP、卸载、重计算</translation>
    </message>
    <message>
        <source>the plan&apos;s own prediction</source>
        <translation>方案自己的预测</translation>
    </message>
    <message>
        <source>a step trains on numbers</source>
        <translation>一步训练用的应是有限的数</translation>
    </message>
    <message>
        <source>practice text on 3D-HybridEngine</source>
        <translation>关于 3D-HybridEngine 的实践文章</translation>
    </message>
    <message>
        <source>practice text on resharding</source>
        <translation>关于重分片的实践文章</translation>
    </message>
    <message>
        <source>practice text on 3D-HybridEngine; practice text on resharding</source>
        <translation>关于 3D-HybridEngine 的实践文章；关于重分片的实践文章</translation>
    </message>
    <message>
        <source>verl dpsk.md; verl#965, #2579</source>
        <translation>verl dpsk.md；verl#965、#2579</translation>
    </message>
    <message>
        <source>practice text on HybridFlow pipelines</source>
        <translation>关于 HybridFlow 流水线的实践文章</translation>
    </message>
    <message>
        <source>practice text on 3D-HybridEngine; practice text on HybridFlow pipelines</source>
        <translation>关于 3D-HybridEngine 的实践文章；关于 HybridFlow 流水线的实践文章</translation>
    </message>
    <message>
        <source>7B: 0.02 s (verl fully_async.md, 4 -&gt; 4 GPUs, bucketed) to 0.12 s; our lower bound for 7B TP8 -&gt; TP2 on H200 is 15 ms</source>
        <translation>7B：0.02 s（verl fully_async.md，4 -&gt; 4 张 GPU，分桶）到 0.12 s；H200 上 7B TP8 -&gt; TP2 的下界为 15 ms</translation>
    </message>
    <message>
        <source>9.6 s at 70B (HybridFlow, derived from -89.1 % = 78.2 s), 15.76 -&gt; 4.38 s at 30B, 58.57 -&gt; 23.70 s at 235B (verl fully_async.md)</source>
        <translation>70B 为 9.6 s（HybridFlow，由 -89.1 % = 78.2 s 推得），30B 由 15.76 到 4.38 s，235B 由 58.57 到 23.70 s（verl fully_async.md）</translation>
    </message>
    <message>
        <source>500 -&gt; 50 ms is in no paper; transition time -55.2 % on average, -89.1 % at 70B (HybridFlow 8)</source>
        <translation>500 -&gt; 50 ms 不见于任何论文；切换时间平均 -55.2 %，70B 为 -89.1 %（HybridFlow 8）</translation>
    </message>
    <message>
        <source>up to 36.4 % of an iteration where stages are on different devices (HybridFlow 2.3); below 1 % where only missing bytes move</source>
        <translation>各阶段位于不同设备时可达一次迭代的 36.4 %（HybridFlow 2.3）；只传缺少的字节时低于 1 %</translation>
    </message>
    <message>
        <source>-77 % for TP8/PP4 -&gt; generation TP4, -87 to -89 % for FSDP64 -&gt; TP4xPP2 (derived); it depends on the two layouts alone</source>
        <translation>TP8/PP4 -&gt; 生成 TP4 为 -77 %，FSDP64 -&gt; TP4xPP2 为 -87 到 -89 %（推得）；只取决于两种并行布局</translation>
    </message>
    <message>
        <source>0.19-0.40 (verl dpsk.md), 0.38-0.57 for the best pre-training runs</source>
        <translation>0.19-0.40（verl dpsk.md），最好的预训练为 0.38-0.57</translation>
    </message>
    <message>
        <source>7-15 % in tuned pre-training; more where TP crosses nodes</source>
        <translation>调优后的预训练为 7-15 %；TP 跨节点时更高</translation>
    </message>
    <message>
        <source>16-18 ms for the 7.6 GB that a 7B model gathers, at 362 GB/s on 8 H200</source>
        <translation>7B 模型收集 7.6 GB，在 8 张 H200 上以 362 GB/s 需 16-18 ms</translation>
    </message>
    <message>
        <source>30 GB of fp32 gradients of a 7B model take 75 ms at 400 GB/s</source>
        <translation>7B 模型的 30 GB fp32 梯度以 400 GB/s 需 75 ms</translation>
    </message>
    <message>
        <source>7-1,900 tokens/s/GPU by model and length</source>
        <translation>视模型和长度为 7-1,900 tokens/s/GPU</translation>
    </message>
    <message>
        <source>1,581 (NeMo-RL, 8B, H100); 7B with 28k responses on H20 stay below 500</source>
        <translation>1,581（NeMo-RL，8B，H100）；H20 上回复为 28k 的 7B 低于 500</translation>
    </message>
    <message>
        <source>valleys of 47 % (verl#2181), 50-70 % (OpenRLHF#792); utilisation counts waiting kernels as work</source>
        <translation>低谷为 47 %（verl#2181）、50-70 %（OpenRLHF#792）；利用率把等待的内核也算作工作</translation>
    </message>
    <message>
        <source>the other text pauses at 0.05; verl&apos;s adaptive controller aims at 0.01-0.2</source>
        <translation>另一篇文章在 0.05 时暂停；verl 的自适应控制器目标为 0.01-0.2</translation>
    </message>
    <message>
        <source>the other text allows 0.1</source>
        <translation>另一篇文章允许 0.1</translation>
    </message>
    <message>
        <source>rewards of 0 or 1 have a variance of up to 0.25 by themselves</source>
        <translation>取值 0 或 1 的奖励本身方差可达 0.25</translation>
    </message>
    <message>
        <source>not in the paper; the peak is 1 / (rollout tp x pp) of the model beside the training shard (HybridFlow table 2)</source>
        <translation>不见于论文；峰值为训练分片之外模型的 1 /（rollout tp x pp）（HybridFlow 表 2）</translation>
    </message>
    <message>
        <source>the text rolls back to rollout TP 2 x DP 8 whatever ran out; OOMs in the field are logits, KV wake-up and resume (verl#729, #632, #831)</source>
        <translation>该文章无论什么溢出都退回 rollout TP 2 x DP 8；实际的 OOM 来自 logits、KV 唤醒和恢复（verl#729、#632、#831）</translation>
    </message>
    <message>
        <source>step %1</source>
        <translation>第 %1 步</translation>
    </message>
    <message>
        <source>%1 in %2</source>
        <translation>%2 中的%1</translation>
    </message>
    <message>
        <source>plan for %1 on %2: %3 of %4 GPUs, engine %5, placement colocated, one step off</source>
        <translation>%1 的方案，集群 %2：用 %4 张 GPU 中的 %3 张，引擎 %5，共置，提前一步</translation>
    </message>
    <message>
        <source>plan for %1 on %2: %3 of %4 GPUs, engine %5, placement %6, one step off</source>
        <translation>%1 的方案，集群 %2：用 %4 张 GPU 中的 %3 张，引擎 %5，放置 %6，提前一步</translation>
    </message>
    <message>
        <source>plan for %1 on %2: %3 of %4 GPUs, engine %5, placement colocated</source>
        <translation>%1 的方案，集群 %2：用 %4 张 GPU 中的 %3 张，引擎 %5，共置</translation>
    </message>
    <message>
        <source>plan for %1 on %2: %3 of %4 GPUs, engine %5, placement %6</source>
        <translation>%1 的方案，集群 %2：用 %4 张 GPU 中的 %3 张，引擎 %5，放置 %6</translation>
    </message>
    <message>
        <source>model %1, %2: %3 parameters, %4 of them per token</source>
        <translation>模型 %1，%2：%3 参数，每个 token 用其中 %4</translation>
    </message>
    <message>
        <source>model %1, %2: %3 parameters</source>
        <translation>模型 %1，%2：%3 参数</translation>
    </message>
    <message>
        <source>%1 tokens per micro-batch, %2 where it does not train</source>
        <translation>每个微批 %1 个 token，不训练时 %2 个</translation>
    </message>
    <message>
        <source>%1 tokens per micro-batch</source>
        <translation>每个微批 %1 个 token</translation>
    </message>
    <message>
        <source>%1 sequences at once, log-probs computed again</source>
        <translation>同时 %1 条序列，log-prob 重新计算</translation>
    </message>
    <message>
        <source>%1 sequences at once, log-probs not told</source>
        <translation>同时 %1 条序列，不返回 log-prob</translation>
    </message>
    <message>
        <source>%1 sequences at once, log-probs told</source>
        <translation>同时 %1 条序列，随 token 返回 log-prob</translation>
    </message>
    <message>
        <source>%1 sequences at once</source>
        <translation>同时 %1 条序列</translation>
    </message>
    <message>
        <source>engine %1 does not run %2: priced under its rules, and for another engine to run</source>
        <translation>引擎 %1 不运行 %2：按它的规则计价，由其他引擎运行</translation>
    </message>
    <message>
        <source>fullest rank on %1 %2 of %3 (%4 %)</source>
        <translation>%1 上最满的 rank 占用 %2 / %3（%4 %）</translation>
    </message>
    <message>
        <source>fullest rank %1 of %2 (%3 %)</source>
        <translation>最满的 rank 占用 %1 / %2（%3 %）</translation>
    </message>
    <message>
        <source>fits with %1: the device holds %2 +- %3 of %4 then (%5)</source>
        <translation>放得下的概率为%1：届时设备占用 %2 +- %3，共 %4（%5）</translation>
    </message>
    <message>
        <source>nobody has measured the memory of engine %1</source>
        <translation>没有人测量过引擎 %1 的显存</translation>
    </message>
    <message>
        <source>error bar of %1 measured configurations</source>
        <translation>误差由 %1 个实测配置得出</translation>
    </message>
    <message>
        <source>one step of safety, %1: no plan of this request fits so surely</source>
        <translation>再稳妥一级，%1：此问题没有如此确定放得下的方案</translation>
    </message>
    <message>
        <source>one step of safety, %1: this plan has it</source>
        <translation>再稳妥一级，%1：该方案已达到</translation>
    </message>
    <message>
        <source>one step of safety, %1: costs %2 (%3), %4</source>
        <translation>再稳妥一级，%1：代价 %2（%3），%4</translation>
    </message>
    <message>
        <source>less %1 where training weights are views of the rollout&apos;s: the search counts both</source>
        <translation>若训练权重是 rollout 权重的视图则少占 %1：搜索时两份都计入</translation>
    </message>
    <message>
        <source>gen waits for the server&apos;s front end, which hands every token over: %1 of its %2</source>
        <translation>gen 等待服务器前端（由它逐个交出 token）：%2 中的 %1</translation>
    </message>
    <message>
        <source>responses of %1 tokens on average: %2 before they are cut at %3</source>
        <translation>回复平均 %1 个 token：在 %3 处截断之前为 %2 个</translation>
    </message>
    <message>
        <source>step %1 +- %2 (one standard deviation, from the covariance of the constants), %3 tokens/s/GPU, update at %4 % of peak, %5 of communication</source>
        <translation>一步 %1 +- %2（一个标准差，由校准常数的协方差得出），%3 token/s/GPU，更新达到峰值算力的 %4 %，通信 %5</translation>
    </message>
    <message>
        <source>step %1, %2 tokens/s/GPU, update at %3 % of peak, %4 of communication</source>
        <translation>一步 %1，%2 token/s/GPU，更新达到峰值算力的 %3 %，通信 %4</translation>
    </message>
    <message>
        <source>adapters of rank %1 beside frozen weights: %2 million parameters trained</source>
        <translation>冻结权重之外训练秩为 %1 的适配器：%2 百万个参数</translation>
    </message>
    <message>
        <source>reshard %1 -&gt; %2, %3: busiest rank receives %4 (lower bound %5; adapters alone, once before %6 of the weights beside them)</source>
        <translation>重分片 %1 -&gt; %2，%3：最忙的 rank 接收 %4（下界 %5；只传适配器，事先一次另传 %6 权重）</translation>
    </message>
    <message>
        <source>reshard %1 -&gt; %2, %3: busiest rank receives %4 (lower bound %5; adapters alone)</source>
        <translation>重分片 %1 -&gt; %2，%3：最忙的 rank 接收 %4（下界 %5；只传适配器）</translation>
    </message>
    <message>
        <source>reshard %1 -&gt; %2, %3: busiest rank receives %4 (lower bound %5; gathering everything: %6x)</source>
        <translation>重分片 %1 -&gt; %2，%3：最忙的 rank 接收 %4（下界 %5；全部收集则为 %6 倍）</translation>
    </message>
    <message>
        <source>reshard %1 -&gt; %2, %3: busiest rank receives %4 (lower bound %5)</source>
        <translation>重分片 %1 -&gt; %2，%3：最忙的 rank 接收 %4（下界 %5）</translation>
    </message>
    <message>
        <source>%1 by %2 in buckets of %3</source>
        <translation>%1，经 %2，分桶 %3</translation>
    </message>
    <message>
        <source>%1 in buckets of %2</source>
        <translation>%1，分桶 %2</translation>
    </message>
    <message>
        <source>%1 by copy_engine</source>
        <translation>%1，经 copy_engine</translation>
    </message>
    <message>
        <source>%1 by nccl</source>
        <translation>%1，经 nccl</translation>
    </message>
    <message>
        <source>certificate: none; the plan is %1</source>
        <translation>证书：无；该方案%1</translation>
    </message>
    <message>
        <source>certificate: %1 = %2, proven best of the space (gap %3 %); %4 candidates priced, %5 branches cut</source>
        <translation>证书：%1 = %2，已证明在搜索空间内最优（差距 %3 %）；评估了 %4 个候选，剪掉 %5 个分支</translation>
    </message>
    <message>
        <source>left open: %1</source>
        <translation>未涵盖：%1</translation>
    </message>
    <message>
        <source>no other plan fits within the settings</source>
        <translation>在所给设置下没有其他放得下的方案</translation>
    </message>
    <message>
        <source>and %1 more in the plan file</source>
        <translation>另有 %1 个在方案文件中</translation>
    </message>
    <message>
        <source>+%1 GPUs</source>
        <translation>多 %1 张 GPU</translation>
    </message>
    <message>
        <source>%1 GPUs, step %2</source>
        <translation>%1 张 GPU，一步 %2</translation>
    </message>
    <message>
        <source>%1 tokens/s/GPU</source>
        <translation>%1 token/s/GPU</translation>
    </message>
    <message>
        <source>%1 GPU s per step</source>
        <translation>每步 %1 GPU 秒</translation>
    </message>
    <message>
        <source>%1 per step</source>
        <translation>每步 %1</translation>
    </message>
    <message>
        <source>margin: no plan on as few GPUs; errors of the predicted times do not change that</source>
        <translation>裕度：没有 GPU 同样少的其他方案；预测时间的误差不会改变这一点</translation>
    </message>
    <message>
        <source>margin: another plan wins if the predictions of the two plans err by %1 % in opposite directions; a tie: the nearest is predicted to be as good</source>
        <translation>裕度：两个方案的预测朝相反方向各偏差 %1 % 时，另一方案才会胜出；不相上下：最接近的方案预测同样好</translation>
    </message>
    <message>
        <source>margin: another plan wins if the predictions of the two plans err by %1 % in opposite directions; a tie: the nearest is behind by %2 standard deviations of the difference</source>
        <translation>裕度：两个方案的预测朝相反方向各偏差 %1 % 时，另一方案才会胜出；不相上下：最接近的方案落后 %2 个差值标准差</translation>
    </message>
    <message>
        <source>margin: another plan wins if the predictions of the two plans err by %1 % in opposite directions; the nearest is behind by more than %2 standard deviations of the difference</source>
        <translation>裕度：两个方案的预测朝相反方向各偏差 %1 % 时，另一方案才会胜出；最接近的方案落后超过 %2 个差值标准差</translation>
    </message>
    <message>
        <source>margin: another plan wins if the predictions of the two plans err by %1 % in opposite directions; the nearest is behind by %2 standard deviations of the difference</source>
        <translation>裕度：两个方案的预测朝相反方向各偏差 %1 % 时，另一方案才会胜出；最接近的方案落后 %2 个差值标准差</translation>
    </message>
    <message>
        <source>margin: another plan wins if the predictions of the two plans err by %1 % in opposite directions</source>
        <translation>裕度：两个方案的预测朝相反方向各偏差 %1 % 时，另一方案才会胜出</translation>
    </message>
    <message>
        <source>constants: %1 measured, %2 shipped (calibration %3)</source>
        <translation>校准常数：实测 %1 个，自带 %2 个（校准 %3）</translation>
    </message>
    <message>
        <source>no feasible plan</source>
        <translation>没有可行方案</translation>
    </message>
    <message>
        <source>nearest fix: %1</source>
        <translation>最接近的解决办法：%1</translation>
    </message>
    <message>
        <source>%1: %2 steps, %3 left out as warm-up</source>
        <translation>%1：%2 步，另有 %3 步作为预热不计</translation>
    </message>
    <message>
        <source>steps that other plans of the folder ran, left out: %1</source>
        <translation>由该文件夹中其他计划运行的步，不计：%1</translation>
    </message>
    <message>
        <source>%1: left out, as the log has the trainer&apos;s wait for it, not its time</source>
        <translation>%1：不计，日志记录的是训练器的等待时间，而不是它的用时</translation>
    </message>
    <message>
        <source>prompts: mean %1 tokens, planned %2</source>
        <translation>提示：平均 %1 个 token，方案为 %2</translation>
    </message>
    <message>
        <source>lengths: not measured, the plan&apos;s</source>
        <translation>长度：未测量，采用方案的</translation>
    </message>
    <message>
        <source>responses: mean %1 tokens of at most %2, planned %3; as a workload: %4</source>
        <translation>回复：平均 %1 个 token，至多 %2，方案为 %3；写入工作负载：%4</translation>
    </message>
    <message>
        <source>constant that moved</source>
        <translation>变化的常数</translation>
    </message>
    <message>
        <source>further than constants of its kind go: likely a cost that the model does not have</source>
        <translation>超出此类常数的范围：很可能有模型未计入的开销</translation>
    </message>
    <message>
        <source>above the %1 that the device is stated to reach, within its error bar</source>
        <translation>高于设备标称的 %1，但在误差范围内</translation>
    </message>
    <message>
        <source>above the %1 that the device is stated to reach: likely the run did less work than its plan has</source>
        <translation>高于设备标称的 %1：很可能运行所做的计算少于方案</translation>
    </message>
    <message>
        <source>no constant moved: the runs time no phase of their plans</source>
        <translation>没有常数变化：运行没有记录方案中任何阶段的用时</translation>
    </message>
    <message>
        <source>no constant moved: the phases agree with the calibration as it is</source>
        <translation>没有常数变化：各阶段与现有校准一致</translation>
    </message>
    <message>
        <source>no constant moved: none explains how far the phases are off</source>
        <translation>没有常数变化：没有哪个常数能解释各阶段的偏差</translation>
    </message>
    <message>
        <source>left, as the phases agree with them:</source>
        <translation>保持不变，各阶段与它们一致：</translation>
    </message>
    <message>
        <source>left, as the phases do not tell them apart:</source>
        <translation>保持不变，各阶段无法区分它们：</translation>
    </message>
    <message>
        <source>left, as the phases say too little of them:</source>
        <translation>保持不变，各阶段提供的信息太少：</translation>
    </message>
    <message>
        <source>left, as no phase depends on them:</source>
        <translation>保持不变，没有阶段依赖它们：</translation>
    </message>
    <message>
        <source>fragmentation is left: no run says what its allocator reserved</source>
        <translation>碎片率保持不变：没有运行记录分配器预留了多少</translation>
    </message>
    <message>
        <source>fragmentation: %1% of the device before, %2% +- %3% of it after (%4 run)</source>
        <translation>碎片率：之前为设备显存的 %1%，之后为 %2% +- %3%（%4 次运行）</translation>
    </message>
    <message>
        <source>fragmentation: %1% of the device before, %2% +- %3% of it after (%4 runs)</source>
        <translation>碎片率：之前为设备显存的 %1%，之后为 %2% +- %3%（%4 次运行）</translation>
    </message>
    <message>
        <source>phases are off by %1 of their deviations before, %2 after</source>
        <translation>各阶段的偏差：之前为其标准差的 %1 倍，之后为 %2 倍</translation>
    </message>
    <message>
        <source>nothing is held out: one run of one step</source>
        <translation>没有留出数据：只有一次一步的运行</translation>
    </message>
    <message>
        <source>held out, learned from the rest</source>
        <translation>留出部分，由其余部分学得</translation>
    </message>
    <message>
        <source>mean error of the steps held out: %1% before, %2% after</source>
        <translation>留出步的平均误差：之前 %1%，之后 %2%</translation>
    </message>
    <message>
        <source>step %1 measured, %2 by the learned constants</source>
        <translation>一步实测 %1，按学得的常数为 %2</translation>
    </message>
    <message>
        <source>no other setting is quicker and fits</source>
        <translation>没有更快且放得下的其他设置</translation>
    </message>
    <message>
        <source>%1. %2, %3 times as quick: -%4 +- %5, fits with %6%</source>
        <translation>%1. %2，快 %3 倍：-%4 +- %5，放得下的概率为 %6%</translation>
    </message>
    <message>
        <source>prefill batches of %1 -&gt; %2 tokens</source>
        <translation>预填充批 %1 -&gt; %2 个 token</translation>
    </message>
    <message>
        <source>%1, prefill batches of %2 -&gt; %3 tokens</source>
        <translation>%1，预填充批 %2 -&gt; %3 个 token</translation>
    </message>
    <message>
        <source>engine &apos;%1&apos; has one set of process groups (Megatron&apos;s mpu) for all roles on the same GPUs that train or score, so they share tp, pp, vpp, cp, ep and etp</source>
        <translation>引擎 &apos;%1&apos; 对同一批 GPU 上训练或打分的所有角色只有一组进程组（Megatron 的 mpu），因此它们共用 tp、pp、vpp、cp、ep 和 etp</translation>
    </message>
    <message>
        <source>no such degree (%1)</source>
        <translation>没有这样的并行度（%1）</translation>
    </message>
    <message>
        <source>at least a longest sequence, %1,</source>
        <translation>至少一条最长序列 %1，</translation>
    </message>
    <message>
        <source>0 or 3 with adapters, which every replica has whole,</source>
        <translation>使用适配器时的 0 或 3（每个副本都有完整的适配器），</translation>
    </message>
    <message>
        <source>none with adapters, whose weights move once,</source>
        <translation>使用适配器时的 none（其权重只移动一次），</translation>
    </message>
    <message>
        <source>1 (not %1)</source>
        <translation>1（不能是%1）</translation>
    </message>
    <message>
        <source>etp = tp (not %1)</source>
        <translation>etp = tp（不能是%1）</translation>
    </message>
    <message>
        <source>none or optimizer</source>
        <translation>none 或 optimizer</translation>
    </message>
    <message>
        <source>ulysses deals the %1 key heads of linear attention out evenly, and tp x cp = %2 does not divide them</source>
        <translation>ulysses 平均分配线性注意力的 %1 个键头，而 tp x cp = %2 不能整除</translation>
    </message>
    <message>
        <source>ulysses deals the %1 query heads out evenly, and tp x cp = %2 does not divide them</source>
        <translation>ulysses 平均分配 %1 个查询头，而 tp x cp = %2 不能整除</translation>
    </message>
    <message>
        <source>vLLM divides its %1 %2 evenly, which %3 tensor-parallel workers cannot</source>
        <translation>vLLM 平均切分 %1 个%2，%3 个张量并行进程做不到</translation>
    </message>
    <message>
        <source>vLLM gives each worker whole KV heads, or one head to equally many: %1 heads and %2 workers divide neither way</source>
        <translation>vLLM 给每个进程整数个 KV 头，或把一个头给同样多的进程：%1 个头与 %2 个进程两种方式都除不尽</translation>
    </message>
    <message>
        <source>rules: %1</source>
        <translation>规则：%1</translation>
    </message>
    <message>
        <source>%1 (%2, models from %3B)</source>
        <translation>%1（%2，%3B 以上的模型）</translation>
    </message>
    <message>
        <source>%1 (%2, models of %3B to %4B)</source>
        <translation>%1（%2，%3B 到 %4B 的模型）</translation>
    </message>
    <message>
        <source>value %1, limit %2; predicted %3, bound %4; would fail</source>
        <translation>值 %1，界限 %2；预测 %3，下界 %4；不会通过</translation>
    </message>
    <message>
        <source>value %1, limit %2; predicted %3, bound %4</source>
        <translation>值 %1，界限 %2；预测 %3，下界 %4</translation>
    </message>
    <message>
        <source>value %1, limit %2; predicted %3; would fail</source>
        <translation>值 %1，界限 %2；预测 %3；不会通过</translation>
    </message>
    <message>
        <source>value %1, limit %2; predicted %3</source>
        <translation>值 %1，界限 %2；预测 %3</translation>
    </message>
    <message>
        <source>value %1, limit %2; would fail</source>
        <translation>值 %1，界限 %2；不会通过</translation>
    </message>
    <message>
        <source>value %1, limit %2</source>
        <translation>值 %1，界限 %2</translation>
    </message>
    <message>
        <source>confirmed: %1 [%2]</source>
        <translation>已证实：%1 [%2]</translation>
    </message>
    <message>
        <source>conflicting: %1 [%2]</source>
        <translation>说法不一：%1 [%2]</translation>
    </message>
    <message>
        <source>refuted: %1 [%2]</source>
        <translation>已被否定：%1 [%2]</translation>
    </message>
    <message>
        <source>warn: %1</source>
        <translation>提醒：%1</translation>
    </message>
    <message>
        <source>pause: %1</source>
        <translation>暂停：%1</translation>
    </message>
    <message>
        <source>stop: %1</source>
        <translation>停止：%1</translation>
    </message>
    <message>
        <source>set lr: %1</source>
        <translation>调整学习率：%1</translation>
    </message>
    <message>
        <source>roll back: %1</source>
        <translation>回退：%1</translation>
    </message>
    <message>
        <source>%1 rules: %2</source>
        <translation>%1 条规则：%2</translation>
    </message>
    <message>
        <source>%1: found %2, expected %3 (%4)</source>
        <translation>%1：实际为%2，应为%3（%4）</translation>
    </message>
    <message>
        <source>%1: found %2, expected %3</source>
        <translation>%1：实际为%2，应为%3</translation>
    </message>
    <message>
        <source>found %1, expected %2 (%3)</source>
        <translation>实际为%1，应为%2（%3）</translation>
    </message>
    <message>
        <source>found %1, expected %2</source>
        <translation>实际为%1，应为%2</translation>
    </message>
    <message>
        <source>did you mean &apos;%1&apos;?</source>
        <translation>是不是 &apos;%1&apos;？</translation>
    </message>
    <message>
        <source>a list of %1 items</source>
        <translation>%1 项的列表</translation>
    </message>
    <message>
        <source>a map of %1 keys</source>
        <translation>%1 个键的映射</translation>
    </message>
    <message>
        <source>an integer from %1 to %2</source>
        <translation>%1 到 %2 的整数</translation>
    </message>
    <message>
        <source>an integer of at least %1</source>
        <translation>不小于 %1 的整数</translation>
    </message>
    <message>
        <source>an integer of at most %1</source>
        <translation>不大于 %1 的整数</translation>
    </message>
    <message>
        <source>a number above %1 to %2</source>
        <translation>大于 %1 且不大于 %2 的数</translation>
    </message>
    <message>
        <source>a number from %1 to %2</source>
        <translation>%1 到 %2 的数</translation>
    </message>
    <message>
        <source>a number above %1</source>
        <translation>大于 %1 的数</translation>
    </message>
    <message>
        <source>a number of at least %1</source>
        <translation>不小于 %1 的数</translation>
    </message>
    <message>
        <source>a number of at most %1</source>
        <translation>不大于 %1 的数</translation>
    </message>
    <message>
        <source>one of %1</source>
        <translation>其中之一：%1</translation>
    </message>
    <message>
        <source>no &apos;%1&apos;</source>
        <translation>没有 &apos;%1&apos;</translation>
    </message>
    <message>
        <source>the unknown key &apos;%1&apos;</source>
        <translation>未知的键 &apos;%1&apos;</translation>
    </message>
    <message>
        <source>%1 more unknown keys</source>
        <translation>另有 %1 个未知的键</translation>
    </message>
    <message>
        <source>the key &apos;%1&apos; again</source>
        <translation>重复的键 &apos;%1&apos;</translation>
    </message>
    <message>
        <source>the anchor &apos;&amp;%1&apos;</source>
        <translation>锚点 &apos;&amp;%1&apos;</translation>
    </message>
    <message>
        <source>the tag &apos;%1&apos;</source>
        <translation>标签 &apos;%1&apos;</translation>
    </message>
    <message>
        <source>more than %1 cells in a row</source>
        <translation>一行超过 %1 个单元格</translation>
    </message>
    <message>
        <source>at most %1 columns</source>
        <translation>至多 %1 列</translation>
    </message>
    <message>
        <source>a table of at most %1 cells</source>
        <translation>至多 %1 个单元格的表</translation>
    </message>
    <message>
        <source>%1, as the header has names</source>
        <translation>%1 个，与表头的名称一样多</translation>
    </message>
    <message>
        <source>column %1 without a name</source>
        <translation>第 %1 列没有名称</translation>
    </message>
    <message>
        <source>column %1 named &apos;%2&apos; again</source>
        <translation>第 %1 列再次名为 &apos;%2&apos;</translation>
    </message>
    <message>
        <source>at most %1 keys in a map</source>
        <translation>一个映射至多 %1 个键</translation>
    </message>
    <message>
        <source>more than %1 cells</source>
        <translation>超过 %1 个单元格</translation>
    </message>
    <message>
        <source>more than %1 keys</source>
        <translation>超过 %1 个键</translation>
    </message>
    <message>
        <source>more than %1 values</source>
        <translation>超过 %1 个值</translation>
    </message>
    <message>
        <source>more than %1 levels</source>
        <translation>超过 %1 层</translation>
    </message>
    <message>
        <source>more than %1 bytes</source>
        <translation>超过 %1 字节</translation>
    </message>
    <message>
        <source>at most %1 bytes in a line</source>
        <translation>一行至多 %1 字节</translation>
    </message>
    <message>
        <source>at most %1 values</source>
        <translation>至多 %1 个值</translation>
    </message>
    <message>
        <source>at most %1 levels</source>
        <translation>至多 %1 层</translation>
    </message>
    <message>
        <source>at most %1 bytes</source>
        <translation>至多 %1 字节</translation>
    </message>
    <message>
        <source>cannot open: %1</source>
        <translation>无法打开：%1</translation>
    </message>
    <message>
        <source>cannot write: %1</source>
        <translation>无法写入：%1</translation>
    </message>
    <message>
        <source>cannot create: %1</source>
        <translation>无法创建：%1</translation>
    </message>
    <message>
        <source>syntax error while parsing %1 - %2; expected %3</source>
        <translation>解析 %1 时语法错误 - %2；应为 %3</translation>
    </message>
    <message>
        <source>syntax error while parsing %1 - %2</source>
        <translation>解析 %1 时语法错误 - %2</translation>
    </message>
    <message>
        <source>unexpected %1; expected %2</source>
        <translation>意外的 %1；应为 %2</translation>
    </message>
    <message>
        <source>at least the table&apos;s longest, %1</source>
        <translation>至少为表中最长值 %1</translation>
    </message>
    <message>
        <source>1 to %1 ascending lengths, none above max</source>
        <translation>1 到 %1 个递增的长度，都不超过 max</translation>
    </message>
    <message>
        <source>at most max = %1</source>
        <translation>不大于 max = %1</translation>
    </message>
    <message>
        <source>dataflow call %1 (%2)</source>
        <translation>数据流调用 %1（%2）</translation>
    </message>
    <message>
        <source>%1 in dataflow call %2 (%3)</source>
        <translation>数据流调用 %2（%3）中的%1</translation>
    </message>
    <message>
        <source>%1 in dataflow</source>
        <translation>数据流中的%1</translation>
    </message>
    <message>
        <source>the output &apos;%1&apos; a second time</source>
        <translation>第二次出现的输出 &apos;%1&apos;</translation>
    </message>
    <message>
        <source>the input &apos;%1&apos;</source>
        <translation>输入 &apos;%1&apos;</translation>
    </message>
    <message>
        <source>a cycle through %1</source>
        <translation>经过 %1 的环</translation>
    </message>
    <message>
        <source>%1 GPUs in all</source>
        <translation>共 %1 张 GPU</translation>
    </message>
    <message>
        <source>at most %1 GPUs altogether</source>
        <translation>总共至多 %1 张 GPU</translation>
    </message>
    <message>
        <source>no column &apos;%1&apos;</source>
        <translation>没有列 &apos;%1&apos;</translation>
    </message>
    <message>
        <source>a whole number of tokens from 1 to %1</source>
        <translation>1 到 %1 的整数个 token</translation>
    </message>
    <message>
        <source>a map, as %1 has</source>
        <translation>与 %1 一样的映射</translation>
    </message>
    <message>
        <source>null: %1 has no such part</source>
        <translation>null：%1 没有这一部分</translation>
    </message>
    <message>
        <source>one word per layer (%1)</source>
        <translation>每层一个词（%1）</translation>
    </message>
    <message>
        <source>%1, as this architecture has</source>
        <translation>%1，与此架构一致</translation>
    </message>
    <message>
        <source>no other architecture is known; the closest by name is &apos;%1&apos;</source>
        <translation>不认识其他架构；名称最接近的是 &apos;%1&apos;</translation>
    </message>
    <message>
        <source>no other architecture is known; the closest by its keys is &apos;%1&apos;</source>
        <translation>不认识其他架构；按键最接近的是 &apos;%1&apos;</translation>
    </message>
    <message>
        <source>weights stored in %1 (quantization_config), where its executor reads F32, BF16 and F16</source>
        <translation>以 %1 存储的权重（quantization_config），而其执行器读取 F32、BF16 和 F16</translation>
    </message>
    <message>
        <source>%1 %2, where its executor drops nothing</source>
        <translation>%1 %2，而其执行器不做 dropout</translation>
    </message>
    <message>
        <source>as many layers as %1 names (%2)</source>
        <translation>层数应与 %1 所列一样多（%2）</translation>
    </message>
    <message>
        <source>at most as many as there are experts (%1)</source>
        <translation>不超过专家数（%1）</translation>
    </message>
    <message>
        <source>at most n_group (%1)</source>
        <translation>不超过 n_group（%1）</translation>
    </message>
    <message>
        <source>an even number (rotary pairs)</source>
        <translation>偶数（旋转位置编码成对）</translation>
    </message>
    <message>
        <source>the elements of the patches that are merged (%1)</source>
        <translation>所合并图块的元素数（%1）</translation>
    </message>
    <message>
        <source>the language model&apos;s hidden size (%1)</source>
        <translation>语言模型的隐藏维度（%1）</translation>
    </message>
    <message>
        <source>%1, the number of ranks</source>
        <translation>%1，即 rank 数</translation>
    </message>
    <message>
        <source>pp x vpp = %1 ranges of layers</source>
        <translation>pp x vpp = %1 个层区间</translation>
    </message>
    <message>
        <source>a range that begins at layer %1</source>
        <translation>从第 %1 层开始的区间</translation>
    </message>
    <message>
        <source>every layer once: %1 layers</source>
        <translation>每层恰好一次：共 %1 层</translation>
    </message>
    <message>
        <source>%1 ranks for %2</source>
        <translation>%2 需要的 %1 个 rank</translation>
    </message>
    <message>
        <source>rank %1 twice</source>
        <translation>rank %1 出现两次</translation>
    </message>
    <message>
        <source>%1, one per cell of the axes</source>
        <translation>%1 个，坐标轴的每格一个</translation>
    </message>
    <message>
        <source>a square matrix over %1 names</source>
        <translation>%1 个名称的方阵</translation>
    </message>
    <message>
        <source>%1 with SHA-256 %2</source>
        <translation>%1，SHA-256 为 %2</translation>
    </message>
    <message>
        <source>the config.json of the plan, with SHA-256 %1</source>
        <translation>方案所用的 config.json，SHA-256 为 %1</translation>
    </message>
    <message>
        <source>plan version %1</source>
        <translation>方案版本 %1</translation>
    </message>
    <message>
        <source>calls that are not those of %1</source>
        <translation>不是 %1 的调用</translation>
    </message>
    <message>
        <source>the preset&apos;s calls for kl %1</source>
        <translation>该预设在 kl %1 下的调用</translation>
    </message>
    <message>
        <source>%1, as in the dataflow</source>
        <translation>%1，与数据流一致</translation>
    </message>
    <message>
        <source>%1 without waiting for &apos;%2&apos;</source>
        <translation>%1 没有等待 &apos;%2&apos;</translation>
    </message>
    <message>
        <source>an order in which &apos;%1&apos; is made before it is used</source>
        <translation>&apos;%1&apos; 先产生后使用的顺序</translation>
    </message>
    <message>
        <source>no call &apos;%1&apos;</source>
        <translation>没有调用 &apos;%1&apos;</translation>
    </message>
    <message>
        <source>ranks from 0 to %1, the cluster&apos;s</source>
        <translation>集群的 rank 0 到 %1</translation>
    </message>
    <message>
        <source>%1, the types of its ranks</source>
        <translation>%1，即其 rank 的型号</translation>
    </message>
    <message>
        <source>%1 = prompts_per_step x samples_per_prompt / mini_batches</source>
        <translation>%1 = prompts_per_step x samples_per_prompt / mini_batches，即小批的序列数</translation>
    </message>
    <message>
        <source>null, or a token of the %1 of vocab_size: transformers' embedding takes no other</source>
        <translation>null，或 vocab_size 的 %1 个 token 之一：transformers 的 embedding 不接受其他值</translation>
    </message>
    <message>
        <source>at most one replica per prompt, %1</source>
        <translation>每个提示至多一个副本，即 %1 个</translation>
    </message>
    <message>
        <source>at most one replica per sequence, %1</source>
        <translation>每条序列至多一个副本，即 %1 个</translation>
    </message>
    <message>
        <source>%1, the actor&apos;s</source>
        <translation>%1，即 actor 的</translation>
    </message>
    <message>
        <source>at least lower_bound_bytes = %1</source>
        <translation>不小于 lower_bound_bytes = %1</translation>
    </message>
    <message>
        <source>%1, which the layouts give</source>
        <translation>%1，由并行布局得出</translation>
    </message>
    <message>
        <source>a model that engine &apos;%1&apos; runs</source>
        <translation>引擎 &apos;%1&apos; 能运行的模型</translation>
    </message>
    <message>
        <source>engine &apos;%1&apos; cannot run this architecture</source>
        <translation>引擎 &apos;%1&apos; 不能运行此架构</translation>
    </message>
    <message>
        <source>%1 GPUs on several hosts</source>
        <translation>多台主机上的 %1 张 GPU</translation>
    </message>
    <message>
        <source>one host, of %1 GPUs</source>
        <translation>一台主机，%1 张 GPU</translation>
    </message>
    <message>
        <source>engine &apos;%1&apos;: the rollout&apos;s servers read the memory of ranks on their own host</source>
        <translation>引擎 &apos;%1&apos;：rollout 的服务读取同一主机上各 rank 的内存</translation>
    </message>
    <message>
        <source>adapters of rank %1</source>
        <translation>秩为 %1 的适配器</translation>
    </message>
    <message>
        <source>engine &apos;%1&apos; cannot run them</source>
        <translation>引擎 &apos;%1&apos; 不能运行它们</translation>
    </message>
    <message>
        <source>adapters that engine &apos;%1&apos; trains: %2</source>
        <translation>引擎 &apos;%1&apos; 能训练的适配器：%2</translation>
    </message>
    <message>
        <source>engine &apos;%1&apos; does not hold weights of this type</source>
        <translation>引擎 &apos;%1&apos; 不支持这种类型的权重</translation>
    </message>
    <message>
        <source>%1, as the actor has</source>
        <translation>%1，与 actor 一致</translation>
    </message>
    <message>
        <source>engine &apos;%1&apos; adds up in one order: %2</source>
        <translation>引擎 &apos;%1&apos; 按固定顺序求和：%2</translation>
    </message>
    <message>
        <source>engine &apos;%1&apos; cannot run the %2 so</source>
        <translation>引擎 &apos;%1&apos; 不能这样运行 %2</translation>
    </message>
    <message>
        <source>the servers of &apos;%1&apos; cut experts as they cut the rest</source>
        <translation>&apos;%1&apos; 的服务切分专家的方式与其余部分相同</translation>
    </message>
    <message>
        <source>the servers of &apos;%1&apos; spread experts over tp x data parallel ranks</source>
        <translation>&apos;%1&apos; 的服务把专家分布在 tp x 数据并行的 rank 上</translation>
    </message>
    <message>
        <source>engine &apos;%1&apos; does not run %2</source>
        <translation>引擎 &apos;%1&apos; 不支持 %2</translation>
    </message>
    <message>
        <source>a divisor of the %1 query heads</source>
        <translation>%1 个查询头的约数</translation>
    </message>
    <message>
        <source>a divisor of the %1 ffn columns</source>
        <translation>%1 个 FFN 列的约数</translation>
    </message>
    <message>
        <source>a divisor of the %1 groups of heads whose outputs are projected together</source>
        <translation>%1 个一起投影输出的注意力头分组的约数</translation>
    </message>
    <message>
        <source>no rank has a part of a group</source>
        <translation>任何 rank 都不持有分组的一部分</translation>
    </message>
    <message>
        <source>a divisor of the %1 key-value heads</source>
        <translation>%1 个键值头的约数</translation>
    </message>
    <message>
        <source>a divisor or a multiple of the %1 key-value heads</source>
        <translation>%1 个键值头的约数或倍数</translation>
    </message>
    <message>
        <source>engine &apos;%1&apos; gives every rank equally many; tessera does not need that</source>
        <translation>引擎 &apos;%1&apos; 给每个 rank 同样多；tessera 没有此要求</translation>
    </message>
    <message>
        <source>%1 and %2 layers</source>
        <translation>%1 层与 %2 层</translation>
    </message>
    <message>
        <source>1, or a multiple of pp = %1 sequences of a batch on a replica</source>
        <translation>1，或一个副本上一个批的序列数为 pp = %1 的倍数</translation>
    </message>
    <message>
        <source>1, or at least pp = %1 sequences of a batch on a replica</source>
        <translation>1，或一个副本上一个批至少有 pp = %1 条序列</translation>
    </message>
    <message>
        <source>engine &apos;%1&apos; runs virtual stages on a multiple of pp micro-batches, and a replica of the %2 has %3 sequences</source>
        <translation>引擎 &apos;%1&apos; 按 pp 的整数倍个微批运行虚拟阶段，而 %2 的一个副本有 %3 条序列</translation>
    </message>
    <message>
        <source>%1 as the %2 has</source>
        <translation>%1，与 %2 相同</translation>
    </message>
    <message>
        <source>&apos;%1&apos; %2 has GPUs of its own for the rollout in its asynchronous trainer alone (trainer.v1.trainer_mode=separate_async)</source>
        <translation>&apos;%1&apos; %2 只有异步训练器 (trainer.v1.trainer_mode=separate_async) 才给 rollout 单独的 GPU</translation>
    </message>
    <message>
        <source>%1 ranks that are not the actor&apos;s</source>
        <translation>不属于 actor 的 %1 个 rank</translation>
    </message>
    <message>
        <source>the actor&apos;s %1 ranks</source>
        <translation>actor 的 %1 个 rank</translation>
    </message>
    <message>
        <source>&apos;%1&apos; %2 has one pool of GPUs for actor, rollout, critic and reference; plan with placement=colocated</source>
        <translation>&apos;%1&apos; %2 的 actor、rollout、critic 和 reference 共用一个 GPU 池；请用 placement=colocated 规划</translation>
    </message>
    <message>
        <source>&apos;%1&apos; generates, then trains; verl&apos;s asynchronous trainer runs such plans</source>
        <translation>&apos;%1&apos; 先生成后训练；verl 的异步训练器能运行这样的方案</translation>
    </message>
    <message>
        <source>engine &apos;%1&apos; keeps the rollout shard mapped</source>
        <translation>引擎 &apos;%1&apos; 保持 rollout 分片的映射</translation>
    </message>
    <message>
        <source>%1 with its rotary scaling</source>
        <translation>%1（含旋转位置缩放）</translation>
    </message>
    <message>
        <source>no vision tower</source>
        <translation>没有视觉塔</translation>
    </message>
    <message>
        <source>one, as the workload&apos;s prompts have images</source>
        <translation>有视觉塔，因为工作负载的提示含图像</translation>
    </message>
    <message>
        <source>leave out the workload&apos;s images, or take a vision-language model</source>
        <translation>去掉工作负载的 images，或改用视觉语言模型</translation>
    </message>
    <message>
        <source>at most prompt_tokens = %1 in all images of a prompt, which are among them</source>
        <translation>一个提示的所有图像合计至多 prompt_tokens = %1，它们包含在提示之内</translation>
    </message>
    <message>
        <source>at least %1, the workload&apos;s prompt_tokens %2 + response_tokens.max %3</source>
        <translation>至少 %1，即工作负载的 prompt_tokens %2 + response_tokens.max %3</translation>
    </message>
    <message>
        <source>%1, as actor.tp says</source>
        <translation>%1，与 actor.tp 一致</translation>
    </message>
    <message>
        <source>the value it was fixed to before, %1</source>
        <translation>之前固定的值 %1</translation>
    </message>
    <message>
        <source>the type it was fixed to before, %1</source>
        <translation>之前固定的型号 %1</translation>
    </message>
    <message>
        <source>role &apos;%1&apos;</source>
        <translation>角色 &apos;%1&apos;</translation>
    </message>
    <message>
        <source>field &apos;%1&apos;</source>
        <translation>字段 &apos;%1&apos;</translation>
    </message>
    <message>
        <source>the field &apos;%1&apos; of %2</source>
        <translation>%2 的字段 &apos;%1&apos;</translation>
    </message>
    <message>
        <source>a whole number of at least %1</source>
        <translation>不小于 %1 的整数</translation>
    </message>
    <message>
        <source>0 or 3 (fully sharded): %1 is not trained</source>
        <translation>0 或 3（完全分片）：%1 不训练</translation>
    </message>
    <message>
        <source>a rollout with GPUs of its own generates one step ahead in engine &apos;%1&apos;, which is another algorithm: --one-step-off allows it</source>
        <translation>在引擎 &apos;%1&apos; 中独占 GPU 的 rollout 会提前一步生成，这是另一种算法：--one-step-off 允许这样做</translation>
    </message>
    <message>
        <source>a step of %1 s</source>
        <translation>一步 %1 s</translation>
    </message>
    <message>
        <source>a rank that has a role: 0 to %1</source>
        <translation>有角色的 rank：0 到 %1</translation>
    </message>
    <message>
        <source>seconds from 0 to 1e7</source>
        <translation>0 到 1e7 的秒数</translation>
    </message>
    <message>
        <source>locked by %1</source>
        <translation>已被 %1 锁定</translation>
    </message>
    <message>
        <source>version %1</source>
        <translation>版本 %1</translation>
    </message>
    <message>
        <source>no run %1</source>
        <translation>没有运行 %1</translation>
    </message>
    <message>
        <source>no listing of a run at %1</source>
        <translation>%1 没有运行的列表</translation>
    </message>
    <message>
        <source>several runs: %1</source>
        <translation>多个运行：%1</translation>
    </message>
    <message>
        <source>%1 of them warm-up</source>
        <translation>其中 %1 步为预热</translation>
    </message>
    <message>
        <source>a name that ends in &apos;%1&apos;</source>
        <translation>以 &apos;%1&apos; 结尾的名称</translation>
    </message>
    <message>
        <source>a list of at most %1 plans</source>
        <translation>至多 %1 个方案的列表</translation>
    </message>
    <message>
        <source>at most %1 runs</source>
        <translation>至多 %1 个运行</translation>
    </message>
    <message>
        <source>no row of %1</source>
        <translation>没有 %1 的行</translation>
    </message>
    <message>
        <source>%1 ways of %2</source>
        <translation>%2 的 %1 种连接</translation>
    </message>
    <message>
        <source>%1 of X, NV1 to NV18, PIX, PXB, PHB, NODE, SYS</source>
        <translation>%1 个，取自 X、NV1 到 NV18、PIX、PXB、PHB、NODE、SYS</translation>
    </message>
    <message>
        <source>a line of more bytes</source>
        <translation>字节更多的一行</translation>
    </message>
    <message>
        <source>at most %1 types</source>
        <translation>至多 %1 种类型</translation>
    </message>
    <message>
        <source>at most %1</source>
        <translation>至多 %1</translation>
    </message>
    <message>
        <source>at least %1</source>
        <translation>至少 %1</translation>
    </message>
    <message>
        <source>%1 bytes</source>
        <translation>%1 字节</translation>
    </message>
    <message>
        <source>%1 cells</source>
        <translation>%1 个单元格</translation>
    </message>
    <message>
        <source>unexpected %1</source>
        <translation>意外的 %1</translation>
    </message>
    <message>
        <source>a divisor of %1</source>
        <translation>%1 的约数</translation>
    </message>
    <message>
        <source>%1 types</source>
        <translation>%1 种类型</translation>
    </message>
    <message>
        <source>a multiple of %1</source>
        <translation>%1 的倍数</translation>
    </message>
    <message>
        <source>%1 beside %2</source>
        <translation>%1 与 %2 同时存在</translation>
    </message>
    <message>
        <source>a divisor or a multiple of %1</source>
        <translation>%1 的约数或倍数</translation>
    </message>
    <message>
        <source>%1 ranges</source>
        <translation>%1 个区间</translation>
    </message>
    <message>
        <source>%1 layers</source>
        <translation>%1 层</translation>
    </message>
    <message>
        <source>%1 numbers</source>
        <translation>%1 个数</translation>
    </message>
    <message>
        <source>%1 a second time</source>
        <translation>第二次出现的 %1</translation>
    </message>
    <message>
        <source>rank %1 after rank %2</source>
        <translation>rank %1 排在 rank %2 之后</translation>
    </message>
    <message>
        <source>at least %1, or none</source>
        <translation>至少 %1，或不写</translation>
    </message>
    <message>
        <source>%1 of the actor</source>
        <translation>actor 的 %1</translation>
    </message>
    <message>
        <source>%1 of the rollout</source>
        <translation>rollout 的 %1</translation>
    </message>
    <message>
        <source>%1 of the critic</source>
        <translation>critic 的 %1</translation>
    </message>
    <message>
        <source>%1 of the reference</source>
        <translation>reference 的 %1</translation>
    </message>
    <message>
        <source>%1 of the reward</source>
        <translation>reward 的 %1</translation>
    </message>
    <message>
        <source>%1 positions</source>
        <translation>%1 个位置</translation>
    </message>
    <message>
        <source>a phase of the plan: %1</source>
        <translation>方案的阶段：%1</translation>
    </message>
    <message>
        <source>%1, expected one of: %2</source>
        <translation>%1，应为其中之一：%2</translation>
    </message>
    <message>
        <source>%1 holds %2</source>
        <translation>满足 %1，%2</translation>
    </message>
    <message>
        <source>%1 holds</source>
        <translation>满足 %1</translation>
    </message>
    <message>
        <source>%1 violated %2</source>
        <translation>不满足 %1，%2</translation>
    </message>
    <message>
        <source>%1 violated</source>
        <translation>不满足 %1</translation>
    </message>
    <message>
        <source>%1 unreachable %2</source>
        <translation>不可达 %1，%2</translation>
    </message>
    <message>
        <source>%1 unreachable</source>
        <translation>不可达 %1</translation>
    </message>
    <message>
        <source>%1 unknown %2</source>
        <translation>未知 %1，%2</translation>
    </message>
    <message>
        <source>%1 unknown</source>
        <translation>未知 %1</translation>
    </message>
    <message>
        <source>%1 off</source>
        <translation>未启用 %1</translation>
    </message>
    <message>
        <source>%1 x predicted (%2)</source>
        <translation>%1 倍预测值（%2）</translation>
    </message>
    <message>
        <source>%1 of step (%2)</source>
        <translation>%1 倍一步用时（%2）</translation>
    </message>
    <message>
        <source>%1 of step</source>
        <translation>%1 倍一步用时</translation>
    </message>
    <message>
        <source>%1 and %2: %3</source>
        <translation>%1 与 %2：%3</translation>
    </message>
    <message>
        <source>a cell in quotes, with its quotes doubled</source>
        <translation>加引号的单元格，其中的引号写两遍</translation>
    </message>
    <message>
        <source>an empty file</source>
        <translation>空文件</translation>
    </message>
    <message>
        <source>a header row with the names of the columns</source>
        <translation>含有列名的表头行</translation>
    </message>
    <message>
        <source>a quote inside a bare cell</source>
        <translation>未加引号的单元格中的引号</translation>
    </message>
    <message>
        <source>a bare carriage return</source>
        <translation>单独的回车符</translation>
    </message>
    <message>
        <source>text after a closing quote</source>
        <translation>右引号之后的文字</translation>
    </message>
    <message>
        <source>a comma or line end</source>
        <translation>逗号或行尾</translation>
    </message>
    <message>
        <source>a quote that is never closed</source>
        <translation>未闭合的引号</translation>
    </message>
    <message>
        <source>a closing quote</source>
        <translation>右引号</translation>
    </message>
    <message>
        <source>a name for every column</source>
        <translation>每列都有名称</translation>
    </message>
    <message>
        <source>names that differ</source>
        <translation>互不相同的名称</translation>
    </message>
    <message>
        <source>a control character</source>
        <translation>控制字符</translation>
    </message>
    <message>
        <source>text</source>
        <translation>文本</translation>
    </message>
    <message>
        <source>a byte-order mark</source>
        <translation>字节顺序标记</translation>
    </message>
    <message>
        <source>plain UTF-8</source>
        <translation>纯 UTF-8</translation>
    </message>
    <message>
        <source>save the file as UTF-8 without BOM</source>
        <translation>请把文件存为不带 BOM 的 UTF-8</translation>
    </message>
    <message>
        <source>a NUL byte</source>
        <translation>NUL 字节</translation>
    </message>
    <message>
        <source>a byte that is not UTF-8</source>
        <translation>不属于 UTF-8 的字节</translation>
    </message>
    <message>
        <source>text of at most 65536 bytes</source>
        <translation>最多 65536 字节的文本</translation>
    </message>
    <message>
        <source>text without control characters</source>
        <translation>不含控制字符的文本</translation>
    </message>
    <message>
        <source>a positive integer</source>
        <translation>正整数</translation>
    </message>
    <message>
        <source>an integer</source>
        <translation>整数</translation>
    </message>
    <message>
        <source>a number</source>
        <translation>数</translation>
    </message>
    <message>
        <source>write true or false, unquoted</source>
        <translation>请写 true 或 false，不加引号</translation>
    </message>
    <message>
        <source>write the number without quotes, separators or leading zeros</source>
        <translation>请写数字，不加引号、分隔符或前导零</translation>
    </message>
    <message>
        <source>an object</source>
        <translation>对象</translation>
    </message>
    <message>
        <source>a map</source>
        <translation>映射</translation>
    </message>
    <message>
        <source>a value</source>
        <translation>值</translation>
    </message>
    <message>
        <source>true or false</source>
        <translation>true 或 false</translation>
    </message>
    <message>
        <source>a string</source>
        <translation>字符串</translation>
    </message>
    <message>
        <source>quote it to make it a string</source>
        <translation>加引号即为字符串</translation>
    </message>
    <message>
        <source>a string that is not empty</source>
        <translation>非空字符串</translation>
    </message>
    <message>
        <source>a list</source>
        <translation>列表</translation>
    </message>
    <message>
        <source>a known key</source>
        <translation>已知的键</translation>
    </message>
    <message>
        <source>known keys</source>
        <translation>已知的键</translation>
    </message>
    <message>
        <source>no such file or preset</source>
        <translation>没有这样的文件或预设</translation>
    </message>
    <message>
        <source>a path, or the name of a preset of configs/</source>
        <translation>路径，或 configs/ 中预设的名称</translation>
    </message>
    <message>
        <source>every key once</source>
        <translation>每个键只出现一次</translation>
    </message>
    <message>
        <source>the end of the text</source>
        <translation>文本结尾</translation>
    </message>
    <message>
        <source>a number that a double can hold</source>
        <translation>双精度浮点数能表示的数</translation>
    </message>
    <message>
        <source>an integer of 64 bits</source>
        <translation>64 位整数</translation>
    </message>
    <message>
        <source>a second document</source>
        <translation>第二个文档</translation>
    </message>
    <message>
        <source>one document</source>
        <translation>一个文档</translation>
    </message>
    <message>
        <source>plain values</source>
        <translation>普通的值</translation>
    </message>
    <message>
        <source>anchors and aliases are not supported</source>
        <translation>不支持锚点和别名</translation>
    </message>
    <message>
        <source>an alias</source>
        <translation>别名</translation>
    </message>
    <message>
        <source>the value itself</source>
        <translation>值本身</translation>
    </message>
    <message>
        <source>an empty key</source>
        <translation>空的键</translation>
    </message>
    <message>
        <source>a name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>values without tags</source>
        <translation>不带标签的值</translation>
    </message>
    <message>
        <source>a map as a key</source>
        <translation>以映射为键</translation>
    </message>
    <message>
        <source>a list as a key</source>
        <translation>以列表为键</translation>
    </message>
    <message>
        <source>quote &apos;{&apos; and &apos;[&apos; in text</source>
        <translation>文本中的 &apos;{&apos; 和 &apos;[&apos; 请加引号</translation>
    </message>
    <message>
        <source>a finite number</source>
        <translation>有限的数</translation>
    </message>
    <message>
        <source>an empty document</source>
        <translation>空文档</translation>
    </message>
    <message>
        <source>malformed text</source>
        <translation>格式错误的文本</translation>
    </message>
    <message>
        <source>a pipe</source>
        <translation>管道</translation>
    </message>
    <message>
        <source>a device</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>a socket</source>
        <translation>套接字</translation>
    </message>
    <message>
        <source>no regular file</source>
        <translation>不是普通文件</translation>
    </message>
    <message>
        <source>no such file</source>
        <translation>没有这样的文件</translation>
    </message>
    <message>
        <source>a readable file</source>
        <translation>可读的文件</translation>
    </message>
    <message>
        <source>a folder</source>
        <translation>目录</translation>
    </message>
    <message>
        <source>a file</source>
        <translation>文件</translation>
    </message>
    <message>
        <source>a regular file</source>
        <translation>普通文件</translation>
    </message>
    <message>
        <source>save its text in a file first</source>
        <translation>请先把其内容存入文件</translation>
    </message>
    <message>
        <source>version 1</source>
        <translation>版本 1</translation>
    </message>
    <message>
        <source>this tessera reads version 1 only</source>
        <translation>此版本的 tessera 只读取版本 1</translation>
    </message>
    <message>
        <source>a list of two or more maps</source>
        <translation>由两个或更多映射组成的列表</translation>
    </message>
    <message>
        <source>one kind of node stands at the top level</source>
        <translation>只有一种节点时写在顶层</translation>
    </message>
    <message>
        <source>types whose weakest figures are not the cluster&apos;s</source>
        <translation>各型号的最弱指标与集群的不符</translation>
    </message>
    <message>
        <source>the weakest of each figure, all nodes and the mean price at the top level</source>
        <translation>顶层写各指标中最弱的、全部节点和平均价格</translation>
    </message>
    <message>
        <source>the call a second time</source>
        <translation>第二次出现的调用</translation>
    </message>
    <message>
        <source>every call once</source>
        <translation>每个调用恰好一次</translation>
    </message>
    <message>
        <source>the output &apos;prompts&apos;</source>
        <translation>输出 &apos;prompts&apos;</translation>
    </message>
    <message>
        <source>another name</source>
        <translation>另一个名称</translation>
    </message>
    <message>
        <source>prompts come from the data</source>
        <translation>提示来自数据</translation>
    </message>
    <message>
        <source>one producer</source>
        <translation>只有一个来源</translation>
    </message>
    <message>
        <source>an output of a call, or prompts</source>
        <translation>某个调用的输出，或 prompts</translation>
    </message>
    <message>
        <source>calls that can be put in an order</source>
        <translation>可以排出先后的调用</translation>
    </message>
    <message>
        <source>the column response_tokens, or one column alone</source>
        <translation>列 response_tokens，或只有一列</translation>
    </message>
    <message>
        <source>an empty cell</source>
        <translation>空的单元格</translation>
    </message>
    <message>
        <source>no row</source>
        <translation>没有行</translation>
    </message>
    <message>
        <source>at least one length</source>
        <translation>至少一个长度</translation>
    </message>
    <message>
        <source>layers in ascending order, each once</source>
        <translation>递增的层号，每个只出现一次</translation>
    </message>
    <message>
        <source>a map, or null where the model has none</source>
        <translation>映射；模型没有时为 null</translation>
    </message>
    <message>
        <source>no such key, as of this family</source>
        <translation>该系列没有这个键</translation>
    </message>
    <message>
        <source>attention, state_space, mlp or experts</source>
        <translation>attention、state_space、mlp 或 experts</translation>
    </message>
    <message>
        <source>a token id or null</source>
        <translation>token 编号或 null</translation>
    </message>
    <message>
        <source>a degree of at least 1</source>
        <translation>不小于 1 的并行度</translation>
    </message>
    <message>
        <source>otherwise the replicas would cut the experts differently</source>
        <translation>否则各副本对专家的切分会不同</translation>
    </message>
    <message>
        <source>a ZeRO stage from 0 to 3</source>
        <translation>0 到 3 的 ZeRO 阶段</translation>
    </message>
    <message>
        <source>3, because dp_shard &gt; 1 cuts the parameters</source>
        <translation>3，因为 dp_shard &gt; 1 会切分参数</translation>
    </message>
    <message>
        <source>3 with dp_shard 1</source>
        <translation>3 而 dp_shard 为 1</translation>
    </message>
    <message>
        <source>dp_shard &gt; 1</source>
        <translation>大于 1 的 dp_shard</translation>
    </message>
    <message>
        <source>replicas cut nothing; stages 1 and 2 do with dp_replicate alone</source>
        <translation>副本不切分任何东西；阶段 1 和 2 只用 dp_replicate</translation>
    </message>
    <message>
        <source>ppo, grpo, or a list of calls</source>
        <translation>ppo、grpo，或调用的列表</translation>
    </message>
    <message>
        <source>ppo has a critic, grpo none; estimators and losses are the run file's (algorithm.adv_estimator)</source>
        <translation>ppo 有 critic，grpo 没有；估计器和损失在运行文件中给出（algorithm.adv_estimator）</translation>
    </message>
    <message>
        <source>the dataflow has no call of the reference</source>
        <translation>数据流中没有 reference 的调用</translation>
    </message>
    <message>
        <source>linear_attention, full_attention, mlp or moe</source>
        <translation>linear_attention、full_attention、mlp 或 moe</translation>
    </message>
    <message>
        <source>blocks of another kind are not supported</source>
        <translation>不支持其他种类的块</translation>
    </message>
    <message>
        <source>letters of M, *, - and E</source>
        <translation>由 M、*、- 和 E 组成的字母</translation>
    </message>
    <message>
        <source>a layer of full attention at least</source>
        <translation>至少一层全注意力</translation>
    </message>
    <message>
        <source>models without a KV cache are not supported</source>
        <translation>不支持没有 KV 缓存的模型</translation>
    </message>
    <message>
        <source>false, as DeepSeek-V4 was published</source>
        <translation>false，与发布的 DeepSeek-V4 一致</translation>
    </message>
    <message>
        <source>1: all query heads share one head of keys</source>
        <translation>1：所有查询头共用一个键头</translation>
    </message>
    <message>
        <source>an even number, at most head_dim</source>
        <translation>偶数，至多为 head_dim</translation>
    </message>
    <message>
        <source>1, as every layer of the class has</source>
        <translation>1，与该类每层所有的一致</translation>
    </message>
    <message>
        <source>moe or hash_moe</source>
        <translation>moe 或 hash_moe</translation>
    </message>
    <message>
        <source>full or shared</source>
        <translation>full 或 shared</translation>
    </message>
    <message>
        <source>an indexer in the first layer</source>
        <translation>第一层要有索引器</translation>
    </message>
    <message>
        <source>there is no layer before it whose choice it could take</source>
        <translation>前面没有层可供沿用其选择</translation>
    </message>
    <message>
        <source>0, %1 or %2</source>
        <translation>0、%1 或 %2</translation>
    </message>
    <message>
        <source>false, as Nemotron-H was published</source>
        <translation>false，与发布的 Nemotron-H 一致</translation>
    </message>
    <message>
        <source>layers of another kind are not supported</source>
        <translation>不支持其他种类的层</translation>
    </message>
    <message>
        <source>one entry per layer</source>
        <translation>每层一项</translation>
    </message>
    <message>
        <source>a ...ForCausalLM, ...ForTokenClassification or ...ForSequenceClassification</source>
        <translation>...ForCausalLM、...ForTokenClassification 或 ...ForSequenceClassification</translation>
    </message>
    <message>
        <source>a whole number of at least 1</source>
        <translation>不小于 1 的整数</translation>
    </message>
    <message>
        <source>a multiple of num_attention_heads where head_dim is absent</source>
        <translation>没有 head_dim 时为 num_attention_heads 的倍数</translation>
    </message>
    <message>
        <source>a multiple of n_head</source>
        <translation>n_head 的倍数</translation>
    </message>
    <message>
        <source>a gelu, as GPT-2 has</source>
        <translation>与 GPT-2 一样的 gelu</translation>
    </message>
    <message>
        <source>false: a decoder alone</source>
        <translation>false：只有解码器</translation>
    </message>
    <message>
        <source>float32, bfloat16 or float16</source>
        <translation>float32、bfloat16 或 float16</translation>
    </message>
    <message>
        <source>both name the same: leave one out</source>
        <translation>两者含义相同：请去掉一个</translation>
    </message>
    <message>
        <source>dense or sparse</source>
        <translation>dense 或 sparse</translation>
    </message>
    <message>
        <source>1: experts in every later layer</source>
        <translation>1：其后的每层都有专家</translation>
    </message>
    <message>
        <source>1, as Nemotron-H has in every such layer</source>
        <translation>1，与 Nemotron-H 的每个此类层一致</translation>
    </message>
    <message>
        <source>experts in one layer at least</source>
        <translation>至少一层有专家</translation>
    </message>
    <message>
        <source>every layer of this config has a plain MLP</source>
        <translation>此配置的每层都是普通 MLP</translation>
    </message>
    <message>
        <source>a size, or null where queries are not compressed</source>
        <translation>维度；查询不压缩时为 null</translation>
    </message>
    <message>
        <source>a size: the indexer reads the compressed queries</source>
        <translation>维度：索引器读取压缩后的查询</translation>
    </message>
    <message>
        <source>default, linear, llama3, yarn or longrope</source>
        <translation>default、linear、llama3、yarn 或 longrope</translation>
    </message>
    <message>
        <source>one entry per layer where use_sliding_window is true</source>
        <translation>use_sliding_window 为 true 时每层一项</translation>
    </message>
    <message>
        <source>full or sliding attention in all layers alike</source>
        <translation>所有层同为全注意力或滑动窗口注意力</translation>
    </message>
    <message>
        <source>0, or as many as there are layers</source>
        <translation>0，或与层数相同</translation>
    </message>
    <message>
        <source>windows in some layers only are not supported</source>
        <translation>不支持只有部分层有窗口</translation>
    </message>
    <message>
        <source>chunked_attention in the layers with positions alone</source>
        <translation>只在带位置编码的层使用 chunked_attention</translation>
    </message>
    <message>
        <source>1: whole heads are rotated</source>
        <translation>1：旋转整个头</translation>
    </message>
    <message>
        <source>fp8, whose weights are planned in torch_dtype</source>
        <translation>fp8，其权重按 torch_dtype 规划</translation>
    </message>
    <message>
        <source>no trainer updates such weights, and verl&apos;s servers take them from none: store them in bf16 (dequantized), and leave the key out</source>
        <translation>没有训练器更新这样的权重，verl 的服务也不从训练器接收：请存为 bf16（反量化）并去掉此键</translation>
    </message>
    <message>
        <source>to plan the weights in the file&apos;s dtype, leave the key out</source>
        <translation>若要按文件的 dtype 规划权重，请去掉此键</translation>
    </message>
    <message>
        <source>false, as every model of it was published</source>
        <translation>false，与该系列发布的所有模型一致</translation>
    </message>
    <message>
        <source>the same number for all layers</source>
        <translation>所有层相同的数</translation>
    </message>
    <message>
        <source>false, as Gemma 3 was published</source>
        <translation>false，与发布的 Gemma 3 一致</translation>
    </message>
    <message>
        <source>ascending numbers</source>
        <translation>递增的数</translation>
    </message>
    <message>
        <source>at least one number</source>
        <translation>至少一个数</translation>
    </message>
    <message>
        <source>a rate above zero</source>
        <translation>大于零的速率</translation>
    </message>
    <message>
        <source>a part of the memory below 1</source>
        <translation>小于 1 的显存比例</translation>
    </message>
    <message>
        <source>made by another version of tessera; run tessera calibrate again</source>
        <translation>由另一版本的 tessera 制作；请重新运行 tessera calibrate</translation>
    </message>
    <message>
        <source>ranks of at least 0</source>
        <translation>不小于 0 的 rank</translation>
    </message>
    <message>
        <source>every rank once</source>
        <translation>每个 rank 恰好一次</translation>
    </message>
    <message>
        <source>a strided rank map without a training role</source>
        <translation>没有训练角色的 strided rank 映射</translation>
    </message>
    <message>
        <source>a role whose weights are received</source>
        <translation>从其接收权重的角色</translation>
    </message>
    <message>
        <source>cp 1 for a strided rank map</source>
        <translation>strided rank 映射要求 cp 1</translation>
    </message>
    <message>
        <source>other ranks than the training role&apos;s</source>
        <translation>不是训练角色的 rank</translation>
    </message>
    <message>
        <source>the same ranks for a strided rank map</source>
        <translation>strided rank 映射要求相同的 rank</translation>
    </message>
    <message>
        <source>the shipped constants stay in place</source>
        <translation>保留自带的常数</translation>
    </message>
    <message>
        <source>NAME=VALUE of a constant above 0 (tessera learn lists them)</source>
        <translation>NAME=VALUE，值大于 0（tessera learn 列出各常数）</translation>
    </message>
    <message>
        <source>a number above 0</source>
        <translation>大于 0 的数</translation>
    </message>
    <message>
        <source>the model has changed since it was planned: plan again</source>
        <translation>模型在规划之后改变了：请重新规划</translation>
    </message>
    <message>
        <source>the role&apos;s ranks in another order</source>
        <translation>该角色的 rank 的另一种顺序</translation>
    </message>
    <message>
        <source>a list of [first, last) pairs of layers</source>
        <translation>由 [first, last) 层区间组成的列表</translation>
    </message>
    <message>
        <source>no &apos;tessera_plan&apos;</source>
        <translation>没有 &apos;tessera_plan&apos;</translation>
    </message>
    <message>
        <source>this is not a plan of tessera</source>
        <translation>这不是 tessera 的方案</translation>
    </message>
    <message>
        <source>the plan was changed by hand or comes from another version: plan again</source>
        <translation>方案被手工修改过，或来自另一版本：请重新规划</translation>
    </message>
    <message>
        <source>no &apos;actor&apos;</source>
        <translation>没有 &apos;actor&apos;</translation>
    </message>
    <message>
        <source>the actor&apos;s model</source>
        <translation>actor 的模型</translation>
    </message>
    <message>
        <source>a model that no role uses</source>
        <translation>没有角色使用的模型</translation>
    </message>
    <message>
        <source>models of roles only</source>
        <translation>只包含角色的模型</translation>
    </message>
    <message>
        <source>64 hexadecimal digits, or &quot;&quot;</source>
        <translation>64 位十六进制数字，或 &quot;&quot;</translation>
    </message>
    <message>
        <source>16 hexadecimal digits, or &quot;&quot;</source>
        <translation>16 位十六进制数字，或 &quot;&quot;</translation>
    </message>
    <message>
        <source>ppo, grpo or custom</source>
        <translation>ppo、grpo 或 custom</translation>
    </message>
    <message>
        <source>algorithm custom may have any calls</source>
        <translation>算法 custom 可以有任意调用</translation>
    </message>
    <message>
        <source>phases that come earlier in the schedule</source>
        <translation>在时间表中更早的阶段</translation>
    </message>
    <message>
        <source>a call of the dataflow</source>
        <translation>数据流中的调用</translation>
    </message>
    <message>
        <source>weights that have arrived before they are used</source>
        <translation>权重先到达后使用</translation>
    </message>
    <message>
        <source>every call of the dataflow</source>
        <translation>数据流的每个调用</translation>
    </message>
    <message>
        <source>no ranks</source>
        <translation>没有 rank</translation>
    </message>
    <message>
        <source>at least one rank</source>
        <translation>至少一个 rank</translation>
    </message>
    <message>
        <source>ascending ranks</source>
        <translation>递增的 rank</translation>
    </message>
    <message>
        <source>put the order into rank_map as a list</source>
        <translation>请把顺序作为列表写入 rank_map</translation>
    </message>
    <message>
        <source>none: the cluster has one type</source>
        <translation>无：集群只有一种型号</translation>
    </message>
    <message>
        <source>contiguous, megatron or a list</source>
        <translation>contiguous、megatron 或列表</translation>
    </message>
    <message>
        <source>only the rollout can be strided over the actor&apos;s ranks</source>
        <translation>只有 rollout 可以在 actor 的 rank 上 strided</translation>
    </message>
    <message>
        <source>the rollout decodes so many sequences at once</source>
        <translation>rollout 同时解码这么多条序列</translation>
    </message>
    <message>
        <source>the cache must hold a longest prompt and response</source>
        <translation>缓存必须容得下最长的提示和回复</translation>
    </message>
    <message>
        <source>every role once, in the order actor, rollout, critic, reference, reward</source>
        <translation>每个角色一次，顺序为 actor、rollout、critic、reference、reward</translation>
    </message>
    <message>
        <source>roles that have calls in the dataflow</source>
        <translation>在数据流中有调用的角色</translation>
    </message>
    <message>
        <source>a key of /models</source>
        <translation>/models 中的键</translation>
    </message>
    <message>
        <source>every role that has calls in the dataflow</source>
        <translation>在数据流中有调用的每个角色</translation>
    </message>
    <message>
        <source>actor to rollout</source>
        <translation>从 actor 到 rollout</translation>
    </message>
    <message>
        <source>the same pair again</source>
        <translation>重复的同一对</translation>
    </message>
    <message>
        <source>every pair once</source>
        <translation>每对恰好一次</translation>
    </message>
    <message>
        <source>no pair</source>
        <translation>没有任何一对</translation>
    </message>
    <message>
        <source>how weights move from the actor to the rollout</source>
        <translation>权重如何从 actor 到 rollout</translation>
    </message>
    <message>
        <source>a variable that Tessera writes, or a setting of NCCL that names no file</source>
        <translation>Tessera 自己写入的变量，或不指向文件的 NCCL 设置</translation>
    </message>
    <message>
        <source>what a job needs besides is exported where it is started</source>
        <translation>作业另外需要的变量请在启动它的地方导出</translation>
    </message>
    <message>
        <source>letters, digits and the signs _-+.,:;=^[]</source>
        <translation>字母、数字和符号 _-+.,:;=^[]</translation>
    </message>
    <message>
        <source>every variable once</source>
        <translation>每个变量恰好一次</translation>
    </message>
    <message>
        <source>a degree that heads divide by</source>
        <translation>能整除注意力头的并行度</translation>
    </message>
    <message>
        <source>a layout that its server can hold</source>
        <translation>其服务支持的并行布局</translation>
    </message>
    <message>
        <source>false, as the rollout reads them on the device</source>
        <translation>false，因为 rollout 在设备上读取它们</translation>
    </message>
    <message>
        <source>a rollout on GPUs of its own that the step waits for</source>
        <translation>独占 GPU 的 rollout，而一步要等待它</translation>
    </message>
    <message>
        <source>generation one step off</source>
        <translation>提前一步的生成</translation>
    </message>
    <message>
        <source>generation in step</source>
        <translation>同步的生成</translation>
    </message>
    <message>
        <source>none: it trains and serves every weight</source>
        <translation>无：它训练并提供所有权重</translation>
    </message>
    <message>
        <source>the products of experts have no adapters</source>
        <translation>专家的矩阵乘没有适配器</translation>
    </message>
    <message>
        <source>the rollout adds them to the weights that it has</source>
        <translation>rollout 把它们加到已有的权重上</translation>
    </message>
    <message>
        <source>their alpha is above 0</source>
        <translation>其 alpha 大于 0</translation>
    </message>
    <message>
        <source>weights of routed experts are not brought to vLLM</source>
        <translation>不支持把路由专家的权重送入 vLLM</translation>
    </message>
    <message>
        <source>vLLM keeps products of latent attention&apos;s weights, which are not brought to it</source>
        <translation>vLLM 保存潜在注意力权重的乘积，不支持送入它们</translation>
    </message>
    <message>
        <source>a vision tower&apos;s weights are not brought to vLLM</source>
        <translation>不支持把视觉塔的权重送入 vLLM</translation>
    </message>
    <message>
        <source>models with learned positions are not brought to vLLM</source>
        <translation>不支持把学习式位置编码的模型送入 vLLM</translation>
    </message>
    <message>
        <source>vLLM generates with a language model&apos;s head only</source>
        <translation>vLLM 只能用语言模型的头生成</translation>
    </message>
    <message>
        <source>pipeline stages are not brought to vLLM</source>
        <translation>不支持把流水线阶段送入 vLLM</translation>
    </message>
    <message>
        <source>vLLM&apos;s workers have no context parallelism here</source>
        <translation>vLLM 的进程在此没有上下文并行</translation>
    </message>
    <message>
        <source>sums over other numbers of tensor-parallel ranks differ</source>
        <translation>张量并行 rank 数不同则求和结果不同</translation>
    </message>
    <message>
        <source>a role that the workload does not have</source>
        <translation>工作负载没有的角色</translation>
    </message>
    <message>
        <source>shorten the workload, or extend the model&apos;s rope_scaling</source>
        <translation>请缩短工作负载，或扩展模型的 rope_scaling</translation>
    </message>
    <message>
        <source>no actor</source>
        <translation>没有 actor</translation>
    </message>
    <message>
        <source>no calls</source>
        <translation>没有调用</translation>
    </message>
    <message>
        <source>a dataflow</source>
        <translation>数据流</translation>
    </message>
    <message>
        <source>no GPUs</source>
        <translation>没有 GPU</translation>
    </message>
    <message>
        <source>at least one</source>
        <translation>至少一个</translation>
    </message>
    <message>
        <source>a probability of running out of memory from 0.000001 to 0.5</source>
        <translation>0.000001 到 0.5 之间的显存不足概率</translation>
    </message>
    <message>
        <source>a GPU type of the cluster</source>
        <translation>集群的 GPU 型号</translation>
    </message>
    <message>
        <source>actor, rollout, critic, reference or reward</source>
        <translation>actor、rollout、critic、reference 或 reward</translation>
    </message>
    <message>
        <source>roles, for example placement=&apos;actor+reference | critic&apos;</source>
        <translation>角色，例如 placement=&apos;actor+reference | critic&apos;</translation>
    </message>
    <message>
        <source>ROLE.FIELD=NUMBER, for example actor.tp=2</source>
        <translation>ROLE.FIELD=NUMBER，例如 actor.tp=2</translation>
    </message>
    <message>
        <source>at most 1e9 s in all</source>
        <translation>总共至多 1e9 s</translation>
    </message>
    <message>
        <source>a constant of the calibration is far from any machine&apos;s</source>
        <translation>某个校准常数远离任何真实机器</translation>
    </message>
    <message>
        <source>a layout that has an account</source>
        <translation>能列出账目的并行布局</translation>
    </message>
    <message>
        <source>a number or null</source>
        <translation>数或 null</translation>
    </message>
    <message>
        <source>no more than ten times timing_s/step</source>
        <translation>不超过 timing_s/step 的十倍</translation>
    </message>
    <message>
        <source>not a regular file</source>
        <translation>不是普通文件</translation>
    </message>
    <message>
        <source>a run&apos;s metrics.jsonl</source>
        <translation>运行的 metrics.jsonl</translation>
    </message>
    <message>
        <source>a folder that can be written</source>
        <translation>可写的目录</translation>
    </message>
    <message>
        <source>no other run in this folder</source>
        <translation>此目录中没有其他运行</translation>
    </message>
    <message>
        <source>no less than least_billion_parameters</source>
        <translation>不小于 least_billion_parameters</translation>
    </message>
    <message>
        <source>false for a rule whose evidence is refuted</source>
        <translation>证据已被推翻的规则应为 false</translation>
    </message>
    <message>
        <source>refuted rules are shown, never acted on</source>
        <translation>被推翻的规则只显示，从不据以行动</translation>
    </message>
    <message>
        <source>a name that no other rule of the file has</source>
        <translation>文件中其他规则没有的名称</translation>
    </message>
    <message>
        <source>a file that is served</source>
        <translation>所提供的文件</translation>
    </message>
    <message>
        <source>hexadecimal digits of at most 1,024 bytes</source>
        <translation>至多 1,024 字节的十六进制数字</translation>
    </message>
    <message>
        <source>names of folders</source>
        <translation>目录名</translation>
    </message>
    <message>
        <source>the token is refused</source>
        <translation>令牌被拒绝</translation>
    </message>
    <message>
        <source>it is served for reading alone (tessera serve --read-only)</source>
        <translation>它只供读取（tessera serve --read-only）</translation>
    </message>
    <message>
        <source>the tessera serve there tells runs nothing</source>
        <translation>那里的 tessera serve 不向运行传话</translation>
    </message>
    <message>
        <source>several runs</source>
        <translation>多个运行</translation>
    </message>
    <message>
        <source>took longer than 20 s</source>
        <translation>超过了 20 s</translation>
    </message>
    <message>
        <source>the plan is not the one that ran</source>
        <translation>该方案不是所运行的方案</translation>
    </message>
    <message>
        <source>at least one step more</source>
        <translation>至少再多一步</translation>
    </message>
    <message>
        <source>--warm-up says how many are left out</source>
        <translation>--warm-up 指定不计的步数</translation>
    </message>
    <message>
        <source>a preset or a path, where no plan is opened</source>
        <translation>未打开方案时应为预设或路径</translation>
    </message>
    <message>
        <source>an empty name</source>
        <translation>空名称</translation>
    </message>
    <message>
        <source>a folder without any of these</source>
        <translation>不含其中任何一个的目录</translation>
    </message>
    <message>
        <source>a model&apos;s config.json, or a run&apos;s metrics.jsonl, ranks or plan.json</source>
        <translation>模型的 config.json，或运行的 metrics.jsonl、ranks 或 plan.json</translation>
    </message>
    <message>
        <source>.json, .yaml, .yml or .txt, a log with steps of a run, or a folder</source>
        <translation>.json、.yaml、.yml 或 .txt，含有运行各步的日志，或目录</translation>
    </message>
    <message>
        <source>a cluster (gpus_per_node) or a workload (prompts_per_step)</source>
        <translation>集群（gpus_per_node）或工作负载（prompts_per_step）</translation>
    </message>
    <message>
        <source>a plan</source>
        <translation>方案</translation>
    </message>
    <message>
        <source>the plan&apos;s certificate</source>
        <translation>方案的证书</translation>
    </message>
    <message>
        <source>no settings</source>
        <translation>没有设置</translation>
    </message>
    <message>
        <source>a plan of this version</source>
        <translation>此版本的方案</translation>
    </message>
    <message>
        <source>plan again</source>
        <translation>请重新规划</translation>
    </message>
    <message>
        <source>ppo, grpo, or an empty text: as the workload says</source>
        <translation>ppo、grpo，或空文本：以工作负载为准</translation>
    </message>
    <message>
        <source>the table that nvidia-smi topo -m prints</source>
        <translation>nvidia-smi topo -m 打印的表</translation>
    </message>
    <message>
        <source>no heading GPU0 ...</source>
        <translation>没有表头 GPU0 ...</translation>
    </message>
    <message>
        <source>GPUs behind network cards</source>
        <translation>位于网卡之后的 GPU</translation>
    </message>
    <message>
        <source>a cluster of several GPU types</source>
        <translation>有多种 GPU 型号的集群</translation>
    </message>
    <message>
        <source>one of one type</source>
        <translation>只有一种型号的集群</translation>
    </message>
    <message>
        <source>GPUs that NVLink does not join</source>
        <translation>没有 NVLink 相连的 GPU</translation>
    </message>
    <message>
        <source>a cluster whose GPUs are joined by PCIe, as l40s-8 or a100-pcie-8</source>
        <translation>GPU 经 PCIe 相连的集群，如 l40s-8 或 a100-pcie-8</translation>
    </message>
    <message>
        <source>it says how fast they are</source>
        <translation>由它给出速率</translation>
    </message>
    <message>
        <source>a list of token ids</source>
        <translation>token 编号的列表</translation>
    </message>
    <message>
        <source>a number for each of response_ids</source>
        <translation>response_ids 的每项各一个数</translation>
    </message>
    <message>
        <source>a run&apos;s samples</source>
        <translation>运行的样本</translation>
    </message>
    <message>
        <source>ranks</source>
        <translation>rank</translation>
    </message>
    <message>
        <source>layout</source>
        <translation>布局</translation>
    </message>
    <message>
        <source>batches</source>
        <translation>批</translation>
    </message>
    <message>
        <source>before</source>
        <translation>之前</translation>
    </message>
    <message>
        <source>after</source>
        <translation>之后</translation>
    </message>
    <message>
        <source>error</source>
        <translation>误差</translation>
    </message>
    <message>
        <source>factor</source>
        <translation>倍数</translation>
    </message>
    <message>
        <source>the states of Mamba-2 layers are not passed between parts of a sequence</source>
        <translation>Mamba-2 层的状态不在序列的各部分之间传递</translation>
    </message>
    <message>
        <source>an indexer chooses among the keys of a whole sequence, of which cp holds parts</source>
        <translation>索引器从整条序列的键中选择，而 cp 只有其中一部分</translation>
    </message>
    <message>
        <source>a ring over keys (cp) does not pass on the state of linear attention; ulysses deals its heads out</source>
        <translation>键上的环 (cp) 不传递线性注意力的状态；ulysses 会分配其各头</translation>
    </message>
    <message>
        <source>a ring over keys (cp) does not know the model&apos;s sliding window; ulysses does</source>
        <translation>键上的环 (cp) 不支持模型的滑动窗口；ulysses 支持</translation>
    </message>
    <message>
        <source>%1: %2</source>
        <translation>%1：%2</translation>
    </message>
    <message>
        <source>%1 (%2)</source>
        <translation>%1（%2）</translation>
    </message>
    <message>
        <source>the topology</source>
        <translation>拓扑</translation>
    </message>
    <message>
        <source>the cluster</source>
        <translation>集群</translation>
    </message>
    <message>
        <source>the workload</source>
        <translation>工作负载</translation>
    </message>
    <message>
        <source> or </source>
        <translation> 或 </translation>
    </message>
    <message>
        <source>ep %1, etp %2 with tp %3 of a model without experts</source>
        <translation>没有专家的模型的 ep %1、etp %2、tp %3</translation>
    </message>
    <message>
        <source>ep %1 of a model without experts</source>
        <translation>没有专家的模型的 ep %1</translation>
    </message>
    <message>
        <source>ep %1, etp %2 with tp %3 for %4 experts over %5 ranks (tp x cp x shards); etp is 1 and ep divides both</source>
        <translation>ep %1、etp %2、tp %3，%4 个专家分布在 %5 个 rank (tp x cp x 分片) 上；etp 须为 1 且 ep 整除二者</translation>
    </message>
    <message>
        <source>ep %1 for %2 experts over %3 ranks that share weights; ep divides both</source>
        <translation>ep %1，%2 个专家分布在共享权重的 %3 个 rank 上；ep 须整除二者</translation>
    </message>
    <message>
        <source>ep %1, etp %2 with tp %3 for %4 experts; ep may be as many</source>
        <translation>ep %1、etp %2、tp %3，共 %4 个专家；ep 至多为此数</translation>
    </message>
    <message>
        <source>ep %1, etp %2 with tp %3 beside zero %4; experts that lie apart from the rest are not cut into shards: ep x etp may be %5, or zero 0</source>
        <translation>ep %1、etp %2、tp %3，且 zero %4；与其余部分分开放置的专家不再切成分片：ep x etp 可为 %5，或 zero 取 0</translation>
    </message>
    <message>
        <source>ep %1, etp %2 with tp %3; experts are cut as the rest is (etp = tp), or with sequence parallelism into fewer parts</source>
        <translation>ep %1、etp %2、tp %3；专家与其余部分同样切分 (etp = tp)，或配合序列并行切成更少的份</translation>
    </message>
    <message>
        <source>ep %1, etp %2 with tp %3; etp divides tp</source>
        <translation>ep %1、etp %2、tp %3；etp 整除 tp</translation>
    </message>
    <message>
        <source>ep %1, etp %2 with tp %3; ep x etp is a multiple or a divisor of tp</source>
        <translation>ep %1、etp %2、tp %3；ep x etp 须为 tp 的倍数或约数</translation>
    </message>
    <message>
        <source>ep %1, etp %2 with tp %3; without ep experts are cut as the rest is</source>
        <translation>ep %1、etp %2、tp %3；没有 ep 时专家与其余部分同样切分</translation>
    </message>
    <message>
        <source>hidden/layers/vocab %1; torchtitan has of this family %2</source>
        <translation>hidden/layers/vocab 为 %1；torchtitan 的此系列有 %2</translation>
    </message>
    <message>
        <source>%1, which cannot run on packed sequences: %2</source>
        <translation>%1，不能用于打包的序列：%2</translation>
    </message>
    <message>
        <source>no matrix of a layer is called %1, but %2</source>
        <translation>层中没有名为 %1 的矩阵，有的是 %2</translation>
    </message>
    <message>
        <source>none: %1</source>
        <translation>不采取行动：%1</translation>
    </message>
    <message>
        <source>a path, or the name of a preset of configs/%1</source>
        <translation>路径，或 configs/%1 中预设的名称</translation>
    </message>
    <message>
        <source>presets: %1</source>
        <translation>预设：%1</translation>
    </message>
    <message>
        <source>digit after %1</source>
        <translation>%1 之后的数字</translation>
    </message>
    <message>
        <source>object separator</source>
        <translation>对象的分隔符</translation>
    </message>
    <message>
        <source>object key</source>
        <translation>对象的键</translation>
    </message>
    <message>
        <source>end of input</source>
        <translation>输入结束</translation>
    </message>
    <message>
        <source>unexpected end of input</source>
        <translation>输入意外结束</translation>
    </message>
    <message>
        <source>string literal</source>
        <translation>字符串</translation>
    </message>
    <message>
        <source>number literal</source>
        <translation>数字</translation>
    </message>
    <message>
        <source>invalid literal</source>
        <translation>无效的字面值</translation>
    </message>
    <message>
        <source>invalid number</source>
        <translation>无效的数字</translation>
    </message>
    <message>
        <source>&apos;[&apos;, &apos;{&apos;, or a literal</source>
        <translation>&apos;[&apos;、&apos;{&apos; 或字面值</translation>
    </message>
    <message>
        <source>the file ends within a string</source>
        <translation>文件在字符串中间结束</translation>
    </message>
    <message>
        <source>end of map not found</source>
        <translation>映射没有结束</translation>
    </message>
    <message>
        <source>end of map flow not found</source>
        <translation>花括号中的映射没有结束</translation>
    </message>
    <message>
        <source>end of sequence not found</source>
        <translation>列表没有结束</translation>
    </message>
    <message>
        <source>end of sequence flow not found</source>
        <translation>方括号中的列表没有结束</translation>
    </message>
    <message>
        <source>end of verbatim tag not found</source>
        <translation>标签没有结束</translation>
    </message>
    <message>
        <source>cannot assign multiple tags to the same node</source>
        <translation>同一个值不能有多个标签</translation>
    </message>
    <message>
        <source>cannot assign multiple anchors to the same node</source>
        <translation>同一个值不能有多个锚点</translation>
    </message>
    <message>
        <source>bad character found while scanning hex number</source>
        <translation>十六进制数中有非法字符</translation>
    </message>
    <message>
        <source>unknown escape character: %1</source>
        <translation>未知的转义字符：%1</translation>
    </message>
    <message>
        <source>unknown escape character:</source>
        <translation>未知的转义字符：</translation>
    </message>
    <message>
        <source>unknown token</source>
        <translation>未知的记号</translation>
    </message>
    <message>
        <source>illegal document indicator in scalar</source>
        <translation>值中有非法的文档分隔符</translation>
    </message>
    <message>
        <source>illegal EOF in scalar</source>
        <translation>值在文件结尾处没有结束</translation>
    </message>
    <message>
        <source>illegal character in scalar</source>
        <translation>值中有非法字符</translation>
    </message>
    <message>
        <source>illegal tab when looking for indentation</source>
        <translation>缩进中有非法的制表符</translation>
    </message>
    <message>
        <source>illegal flow end</source>
        <translation>非法的右括号</translation>
    </message>
    <message>
        <source>illegal block entry</source>
        <translation>非法的列表项</translation>
    </message>
    <message>
        <source>illegal map key</source>
        <translation>非法的键</translation>
    </message>
    <message>
        <source>illegal map value</source>
        <translation>非法的映射值</translation>
    </message>
    <message>
        <source>alias not found after *</source>
        <translation>* 之后没有别名</translation>
    </message>
    <message>
        <source>anchor not found after &amp;</source>
        <translation>&amp; 之后没有锚点</translation>
    </message>
    <message>
        <source>the referenced anchor is not defined</source>
        <translation>所引用的锚点没有定义</translation>
    </message>
    <message>
        <source>cannot set zero indentation for a block scalar</source>
        <translation>多行文本的缩进不能为零</translation>
    </message>
    <message>
        <source>unexpected character in block scalar</source>
        <translation>多行文本中有意外的字符</translation>
    </message>
    <message>
        <source>no quant_method, %1 bits in groups of %2: %3 bits a weight with its scales</source>
        <translation>没有 quant_method，%1 比特，每组 %2 个：连同缩放因子每个权重 %3 比特</translation>
    </message>
    <message>
        <source>no quant_method, %1 bits</source>
        <translation>没有 quant_method，%1 比特</translation>
    </message>
    <message>
        <source>method %1, %2 bits in groups of %3: %4 bits a weight with its scales</source>
        <translation>方法 %1，%2 比特，每组 %3 个：连同缩放因子每个权重 %4 比特</translation>
    </message>
    <message>
        <source>method %1, %2 bits</source>
        <translation>方法 %1，%2 比特</translation>
    </message>
    <message>
        <source>method %1</source>
        <translation>方法 %1</translation>
    </message>
    <message>
        <source>a multiple of the heads (%1)</source>
        <translation>头数的倍数（%1）</translation>
    </message>
    <message>
        <source>colocated, another layout, on %1</source>
        <translation>共置，另一种并行布局，在 %1 上</translation>
    </message>
    <message>
        <source>%1, another layout, on %2</source>
        <translation>%1，另一种并行布局，在 %2 上</translation>
    </message>
    <message>
        <source>tp%1 on %2</source>
        <translation>tp%1，在 %2 上</translation>
    </message>
    <message>
        <source>%1 = a list of %2 items</source>
        <translation>%1 = %2 项的列表</translation>
    </message>
    <message>
        <source>%1 = a map of %2 keys</source>
        <translation>%1 = %2 个键的映射</translation>
    </message>
    <message>
        <source>no quant_method</source>
        <translation>没有 quant_method</translation>
    </message>
    <message>
        <source>a sliding window in some layers only; all of them may have one, or none</source>
        <translation>只有部分层有滑动窗口；须所有层都有，或都没有</translation>
    </message>
    <message>
        <source>%1, tp%2 on %3</source>
        <translation>%1，tp%2，共 %3 张 GPU</translation>
    </message>
    <message>
        <source>%1 billion</source>
        <translation>%1 B</translation>
    </message>
    <message>
        <source>%1 million</source>
        <translation>%1 M</translation>
    </message>
    <message>
        <source>Click a span to see what it is, or a gap to see what it waits for.</source>
        <translation>单击片段查看详情，单击空隙查看它在等什么。</translation>
    </message>
    <message>
        <source>%1 of stage %2</source>
        <translation>流水线阶段 %2 的 %1</translation>
    </message>
    <message>
        <source>%1 to %2</source>
        <translation>%1 到 %2</translation>
    </message>
    <message>
        <source>its own %1</source>
        <translation>本 rank 的%1</translation>
    </message>
    <message>
        <source>&lt;b&gt;%1&lt;/b&gt; (%2, %3)</source>
        <translation>&lt;b&gt;%1&lt;/b&gt;（%2，%3）</translation>
    </message>
    <message>
        <source>&lt;br&gt;nothing follows here: others work to the end of the step</source>
        <translation>&lt;br&gt;此后没有任务：其他部分工作到该步结束</translation>
    </message>
    <message>
        <source>&lt;br&gt;until %1 of %2 begins</source>
        <translation>&lt;br&gt;直到 %2 的 %1 开始</translation>
    </message>
    <message>
        <source>&lt;br&gt;waits for %1</source>
        <translation>&lt;br&gt;等待 %1</translation>
    </message>
    <message>
        <source>&lt;br&gt;which waited for %1</source>
        <translation>&lt;br&gt;而它等待了 %1</translation>
    </message>
    <message>
        <source>&lt;br&gt;and so on, %1 more</source>
        <translation>&lt;br&gt;如此类推，还有 %1 个</translation>
    </message>
    <message>
        <source>&lt;br&gt;the rank&apos;s other streams are idle, too</source>
        <translation>&lt;br&gt;该 rank 的其他流也空闲</translation>
    </message>
    <message>
        <source>&lt;br&gt;its other streams meanwhile: %1</source>
        <translation>&lt;br&gt;其他流此时：%1</translation>
    </message>
    <message>
        <source>&lt;br&gt;of it %1 (%2 %) communicates within its layers</source>
        <translation>&lt;br&gt;其中 %1（%2 %）在层内通信</translation>
    </message>
    <message>
        <source>&lt;b&gt;idle %1&lt;/b&gt;, %2 of rank %3&lt;br&gt;%4 to %5</source>
        <translation>&lt;b&gt;空闲 %1&lt;/b&gt;，rank %3 的%2&lt;br&gt;%4 到 %5</translation>
    </message>
    <message>
        <source>Time in which no line of a rank has a span; click a gap to see why.</source>
        <translation>一个 rank 的所有行都没有片段的时间；单击空隙查看原因。</translation>
    </message>
    <message>
        <source>Communicates</source>
        <translation>通信</translation>
    </message>
    <message>
        <source>Part of the total in which ranks exchange within layers: tensor, context and expert parallelism</source>
        <translation>总时间中各 rank 在层内交换数据的部分：张量、上下文和专家并行</translation>
    </message>
    <message>
        <source>W S, wheel: zoom · A D: move · F: fit · drag: sum an area · N: next found · underlined: critical path · bar on top: communicates</source>
        <translation>W S、滚轮：缩放 · A D：移动 · F：放大所选 · 拖动：统计区域 · N：下一个匹配 · 下划线：关键路径 · 上方横条：通信</translation>
    </message>
    <message>
        <source>The engine gathers every tensor whole on the trainer&apos;s first rank, which sends it to every rank of the rollout.</source>
        <translation>引擎在训练方的第一个 rank 上收集每个完整张量，再由它发给 rollout 的每个 rank。</translation>
    </message>
    <message>
        <source>The engine gathers every tensor whole on every rank: a cell is what its receiver gets of its sender&apos;s weights, whichever way the collective takes. Of ranks that hold the same it is the nearest one.</source>
        <translation>引擎在每个 rank 上收集每个完整张量：每格是接收方得到的发送方权重，不论集合通信走哪条路径。多个 rank 持有相同部分时，计入最近的一个。</translation>
    </message>
    <message>
        <source>stage %1 of the trainer</source>
        <translation>训练方的流水线阶段 %1</translation>
    </message>
    <message>
        <source>The engine gathers the adapters alone: who sends to whom is not listed.</source>
        <translation>引擎只收集适配器：未列出谁发给谁。</translation>
    </message>
    <message>
        <source>%1 (this plan)</source>
        <translation>%1（本方案）</translation>
    </message>
    <message>
        <source>With %1 ranks the ends are nodes: what their %2 ranks send and receive together.</source>
        <translation>共 %1 个 rank，因此两端是节点：其 %2 个 rank 合计的收发量。</translation>
    </message>
    <message>
        <source>This page follows a run step by step: its figures, what its ranks do, and what the plan predicted beside what was measured.</source>
        <translation>本页逐步跟随一次运行：它的指标、各 rank 在做什么，以及方案的预测与实测的对照。</translation>
    </message>
    <message>
        <source>Start this plan...</source>
        <translation>启动该方案...</translation>
    </message>
    <message>
        <source>Runs the plan that is looked at on this machine (F6). It goes on when the window is closed.</source>
        <translation>在本机运行当前查看的方案（F6）。关闭窗口后它继续运行。</translation>
    </message>
    <message>
        <source>Follow the last run again</source>
        <translation>重新跟踪上次的运行</translation>
    </message>
    <message>
        <source>Open a run&apos;s folder...</source>
        <translation>打开运行的文件夹...</translation>
    </message>
    <message>
        <source>A folder that tessera run writes or has written, or one of verl&apos;s with its metrics.jsonl. It can be dropped on the window, too (Ctrl+R).</source>
        <translation>tessera run 正在写或已写完的文件夹，或含 metrics.jsonl 的 verl 文件夹。也可以拖到窗口上（Ctrl+R）。</translation>
    </message>
    <message>
        <source>Follow a remote run...</source>
        <translation>跟随远程运行...</translation>
    </message>
    <message>
        <source>A run on another host that tessera serve offers there, through ssh -L (Ctrl+Alt+R).</source>
        <translation>另一台主机上由 tessera serve 提供的运行，通过 ssh -L 访问（Ctrl+Alt+R）。</translation>
    </message>
    <message>
        <source>&amp;Go to</source>
        <translation>转到(&amp;G)</translation>
    </message>
    <message>
        <source>%1 took %2: %3</source>
        <translation>%1 用了 %2：%3</translation>
    </message>
    <message>
        <source>not predicted</source>
        <translation>未预测</translation>
    </message>
    <message>
        <source>not judged</source>
        <translation>未判断</translation>
    </message>
    <message>
        <source>No prediction is there that it could be judged by</source>
        <translation>没有可以用来判断它的预测</translation>
    </message>
    <message>
        <source>The run has no such number</source>
        <translation>运行中没有这个数值</translation>
    </message>
    <message>
        <source>Why times are not judged</source>
        <translation>为何不判断时间</translation>
    </message>
    <message>
        <source>times are not judged: %1</source>
        <translation>不判断时间：%1</translation>
    </message>
    <message>
        <source>the plan is for %1, and its ranks run on processors</source>
        <translation>计划是为 %1 作的，而它的各 rank 在处理器上运行</translation>
    </message>
    <message>
        <source>no constant was measured on this machine: tessera calibrate measures it</source>
        <translation>没有在这台机器上测量过任何常数：tessera calibrate 会测量</translation>
    </message>
    <message>
        <source>Predicted times say nothing of this run: %1</source>
        <translation>预测的时间不能说明这次运行：%1</translation>
    </message>
    <message>
        <source>Against row %1</source>
        <translation>与第 %1 行相比</translation>
    </message>
    <message>
        <source>its file has no other plan</source>
        <translation>其文件中没有其他计划</translation>
    </message>
    <message>
        <source>Not calibrated: predicted times are rough, and no rule judges by them. tessera calibrate measures this machine.</source>
        <translation>未校准：预测的时间很粗略，规则不以它们判断。tessera calibrate 可测量本机。</translation>
    </message>
    <message>
        <source>Which log</source>
        <translation>哪个日志</translation>
    </message>
    <message>
        <source>log.txt: every step</source>
        <translation>log.txt：每一步</translation>
    </message>
    <message>
        <source>%1: what the run printed</source>
        <translation>%1：运行打印的内容</translation>
    </message>
    <message>
        <source>No log is here. Every step has a line in log.txt of the run&apos;s folder. What a run prints is read from a file beside its folder: of the same name with .log behind it, or the one of its Slurm job.</source>
        <translation>这里没有日志。运行文件夹的 log.txt 中每一步有一行。运行打印的内容从其文件夹旁的文件读取：同名加 .log 的文件，或其 Slurm 作业的日志。</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>导出</translation>
    </message>
    <message>
        <source>there is not enough memory for it</source>
        <translation>内存不足</translation>
    </message>
    <message>
        <source>This did not work, and the window goes on: %1</source>
        <translation>此操作未成功，窗口继续工作：%1</translation>
    </message>
    <message>
        <source>Nothing is kept for the next start: %1</source>
        <translation>不会为下次启动保存任何内容：%1</translation>
    </message>
    <message>
        <source>What is not kept</source>
        <translation>未保存的内容</translation>
    </message>
    <message>
        <source>the picture cannot be drawn</source>
        <translation>无法绘制该图片</translation>
    </message>
    <message>
        <source>the folder cannot be made</source>
        <translation>无法创建该文件夹</translation>
    </message>
    <message>
        <source>(not set)</source>
        <translation>（未设置）</translation>
    </message>
    <message>
        <source>(free)</source>
        <translation>（未固定）</translation>
    </message>
    <message>
        <source>making a tiny model</source>
        <translation>生成一个微型模型</translation>
    </message>
    <message>
        <source>making prompts</source>
        <translation>生成提示</translation>
    </message>
    <message>
        <source>measuring this machine, about half a minute</source>
        <translation>测量本机，约半分钟</translation>
    </message>
    <message>
        <source>planning</source>
        <translation>规划</translation>
    </message>
    <message>
        <source>Quickstart, step %1 of %2: %3</source>
        <translation>快速入门，第 %1 步，共 %2 步：%3</translation>
    </message>
    <message>
        <source>tessera %1: %2</source>
        <translation>tessera %1：%2</translation>
    </message>
    <message>
        <source>It was cancelled; what was made is in %1.</source>
        <translation>已取消；已生成的内容在 %1 中。</translation>
    </message>
    <message>
        <source>Needs no GPU and no files: a tiny model learns to reverse three digits on four ranks of this machine&apos;s processors, for some minutes (Shift+F6).</source>
        <translation>不需要 GPU，也不需要文件：一个微型模型在本机处理器的四个 rank 上学习把三位数字反转，需要几分钟（Shift+F6）。</translation>
    </message>
    <message>
        <source>Cancel the &amp;quickstart</source>
        <translation>取消快速入门(&amp;Q)</translation>
    </message>
    <message>
        <source>Try the &amp;quickstart...</source>
        <translation>试试快速入门(&amp;Q)...</translation>
    </message>
    <message>
        <source>Where to make the quickstart&apos;s folder</source>
        <translation>在其中创建快速入门文件夹的位置</translation>
    </message>
    <message>
        <source>Export job (Ctrl+J) writes what starts it on a cluster; the quickstart (Shift+F6) needs no GPU.</source>
        <translation>“导出任务”（Ctrl+J）写出在集群上启动它的文件；快速入门（Shift+F6）不需要 GPU。</translation>
    </message>
    <message>
        <source>It needs %1 nodes, and a run is started on this machine alone. %2</source>
        <translation>它需要 %1 个节点，而运行只在本机启动。%2</translation>
    </message>
    <message>
        <source>No driver of a GPU is seen on this machine. %1</source>
        <translation>本机上没有看到 GPU 驱动。%1</translation>
    </message>
    <message>
        <source>a step learns from scores that differ</source>
        <translation>一步从有差异的得分中学习</translation>
    </message>
    <message>
        <source>no answer scored other than the others to its prompt, so that nothing is learned: where critic/score/mean is low, read samples.jsonl and see what the reward looks for (format, length limit), or begin with easier prompts; where it is high, the prompts are too easy</source>
        <translation>每个提示的各个回答得分都相同，因此什么也学不到：若 critic/score/mean 低，请阅读 samples.jsonl，看奖励要求什么（格式、长度上限），或从更容易的提示开始；若它高，则提示太容易</translation>
    </message>
    <message>
        <source>By phase, with one standard deviation of the prediction, and of the mean over the measured steps</source>
        <translation>按阶段，误差线为预测的一个标准差，以及实测各步均值的一个标准差</translation>
    </message>
    <message>
        <source>seconds; error bars: one standard deviation of the prediction, and of the mean over the measured steps</source>
        <translation>秒；误差线：预测的一个标准差，以及实测各步均值的一个标准差</translation>
    </message>
    <message>
        <source>One standard deviation of the prediction, by what its constants leave open</source>
        <translation>预测的一个标准差，来自校准常数的不确定性</translation>
    </message>
    <message>
        <source>One standard deviation of the mean over the measured steps</source>
        <translation>实测各步均值的一个标准差</translation>
    </message>
    <message>
        <source>paused</source>
        <translation>已暂停</translation>
    </message>
    <message>
        <source>%1 of %2 ranks ended well</source>
        <translation>%2 个 rank 中 %1 个正常结束</translation>
    </message>
    <message>
        <source> (and of %1 others)</source>
        <translation>（另有 %1 个也是）</translation>
    </message>
    <message>
        <source>%1; of rank %2 nothing is known: %3%4</source>
        <translation>%1；rank %2 的情况不明：%3%4</translation>
    </message>
    <message>
        <source>its file is missing</source>
        <translation>它的文件不存在</translation>
    </message>
    <message>
        <source>its file cannot be read: %1</source>
        <translation>无法读取它的文件：%1</translation>
    </message>
    <message>
        <source>A multiple of %1, the mini-batches of a step</source>
        <translation>%1（每步的小批数）的倍数</translation>
    </message>
    <message>
        <source>The limit of a response's length; until it is set here it changes with the mean by the same factor</source>
        <translation>回答长度的上限；未在此设定时随平均值按同一倍数变化</translation>
    </message>
    <message>
        <source>the question is being planned</source>
        <translation>正在为该问题规划</translation>
    </message>
    <message>
        <source>no plan answers the question</source>
        <translation>该问题没有方案</translation>
    </message>
    <message>
        <source>nothing was changed</source>
        <translation>没有改动</translation>
    </message>
    <message>
        <source>nothing was undone</source>
        <translation>没有撤销过</translation>
    </message>
    <message>
        <source>no run is open</source>
        <translation>没有打开的运行</translation>
    </message>
    <message>
        <source>the run is being told something</source>
        <translation>正在通知该运行</translation>
    </message>
    <message>
        <source>no rank of the run goes on</source>
        <translation>该运行没有仍在进行的 rank</translation>
    </message>
    <message>
        <source>the run is on another host, which is not reached</source>
        <translation>该运行在另一台主机上，无法连接到它</translation>
    </message>
    <message>
        <source>the run has been asked to stop</source>
        <translation>已要求该运行停止</translation>
    </message>
    <message>
        <source>a run is being started</source>
        <translation>正在启动一个运行</translation>
    </message>
    <message>
        <source>the run has been asked to pause</source>
        <translation>已要求该运行暂停</translation>
    </message>
    <message>
        <source>the run does not pause</source>
        <translation>该运行没有暂停</translation>
    </message>
    <message>
        <source>The plan was edited since its search.</source>
        <translation>该方案在搜索之后被修改过。</translation>
    </message>
    <message>
        <source>The other plans of its file are those of the plan before, and are left out.</source>
        <translation>其文件中的其他方案属于修改前的方案，未列出。</translation>
    </message>
    <message>
        <source>Phases of runs</source>
        <translation>各运行的阶段</translation>
    </message>
    <message>
        <source>Draw another run beside this one (Ctrl+Shift+R) to have its phases here, too.</source>
        <translation>在旁边画出另一个运行（Ctrl+Shift+R），这里也会列出它的各阶段。</translation>
    </message>
    <message>
        <source>Runs side by side</source>
        <translation>运行对比</translation>
    </message>
    <message>
        <source>The simulated step beside the predicted one</source>
        <translation>模拟的一步与预测的一步</translation>
    </message>
    <message>
        <source>Against %1</source>
        <translation>相对 %1</translation>
    </message>
    <message>
        <source>%1 bytes instead of %2</source>
        <translation>%1 字节，应为 %2</translation>
    </message>
    <message>
        <source>the file of rank %1</source>
        <translation>rank %1 的文件</translation>
    </message>
    <message>
        <source>not what a rank of this version writes</source>
        <translation>不是此版本的 rank 所写的内容</translation>
    </message>
    <message>
        <source>Longest response</source>
        <translation>最长回复</translation>
    </message>
    <message>
        <source>the run is on another host</source>
        <translation>该运行在另一台主机上</translation>
    </message>
    <message>
        <source>nothing shows that the run has begun</source>
        <translation>没有迹象表明该运行已经开始</translation>
    </message>
    <message>
        <source>the run has not ended</source>
        <translation>该运行尚未结束</translation>
    </message>
    <message>
        <source>nothing shows that all of its ranks have ended</source>
        <translation>没有迹象表明它的所有 rank 都已结束</translation>
    </message>
    <message>
        <source>the run is finished</source>
        <translation>该运行已完成</translation>
    </message>
    <message>
        <source>the run was on the host %1</source>
        <translation>该运行曾在主机 %1 上</translation>
    </message>
    <message>
        <source>its folder has no plan.json</source>
        <translation>它的文件夹中没有 plan.json</translation>
    </message>
    <message>
        <source>its folder has no run.yaml</source>
        <translation>它的文件夹中没有 run.yaml</translation>
    </message>
    <message>
        <source>it has no checkpoint</source>
        <translation>它没有检查点</translation>
    </message>
    <message>
        <source>Resu&amp;me the run...</source>
        <translation>恢复运行(&amp;M)...</translation>
    </message>
    <message>
        <source>the folder is being read</source>
        <translation>正在读取该文件夹</translation>
    </message>
    <message>
        <source>Go on after step %1, which its newest checkpoint holds? %2This command does it, and relative paths in the run&apos;s files count from %3:</source>
        <translation>从第 %1 步之后继续吗？它最新的检查点保存了该步。%2执行的是下面的命令，运行文件中的相对路径以 %3 为准：</translation>
    </message>
    <message>
        <source>Resume the run</source>
        <translation>恢复运行</translation>
    </message>
    <message>
        <source>Resuming %1</source>
        <translation>正在恢复 %1</translation>
    </message>
    <message>
        <source>the command that started the run has not ended</source>
        <translation>启动该运行的命令尚未结束</translation>
    </message>
    <message>
        <source>Picture (*.png)</source>
        <translation>图片 (*.png)</translation>
    </message>
    <message>
        <source>Drawing (*.svg)</source>
        <translation>矢量图 (*.svg)</translation>
    </message>
    <message>
        <source>Table (*.csv)</source>
        <translation>表格 (*.csv)</translation>
    </message>
    <message>
        <source>Data for programs (*.json)</source>
        <translation>供程序使用的数据 (*.json)</translation>
    </message>
    <message>
        <source>Export this view</source>
        <translation>导出此视图</translation>
    </message>
    <message>
        <source>Export t&amp;his view...</source>
        <translation>导出此视图(&amp;H)...</translation>
    </message>
    <message>
        <source>%1: this view is written as a file that ends in %2, not in &quot;%3&quot;</source>
        <translation>%1：此视图可写成以 %2 结尾的文件，不能以“%3”结尾</translation>
    </message>
    <message>
        <source>%1 was not written: the view shows nothing</source>
        <translation>未写入 %1：该视图没有内容</translation>
    </message>
    <message>
        <source>the keys are for none of the views: a click or Tab chooses one</source>
        <translation>键盘焦点不在任何视图上：单击或按 Tab 选择一个</translation>
    </message>
    <message>
        <source>Unit</source>
        <translation>单位</translation>
    </message>
    <message>
        <source>Predicted, +-</source>
        <translation>预测, +-</translation>
    </message>
    <message>
        <source>Measured, +-</source>
        <translation>实测, +-</translation>
    </message>
    <message>
        <source>Share, %</source>
        <translation>占比, %</translation>
    </message>
    <message>
        <source>Error, %</source>
        <translation>误差, %</translation>
    </message>
    <message>
        <source>Verdict</source>
        <translation>结论</translation>
    </message>
    <message>
        <source>Open t&amp;race...</source>
        <translation>打开 trace(&amp;R)...</translation>
    </message>
    <message>
        <source>Open trace</source>
        <translation>打开 trace</translation>
    </message>
    <message>
        <source>Traces (*.json)</source>
        <translation>Trace (*.json)</translation>
    </message>
    <message>
        <source>Cl&amp;ose the trace</source>
        <translation>关闭 trace(&amp;O)</translation>
    </message>
    <message>
        <source>Reading the trace</source>
        <translation>正在读取 trace</translation>
    </message>
    <message>
        <source>Reading %1: %2 %</source>
        <translation>正在读取 %1：%2 %</translation>
    </message>
    <message>
        <source>Cancel rea&amp;ding</source>
        <translation>取消读取(&amp;D)</translation>
    </message>
    <message>
        <source>Summing</source>
        <translation>正在求和</translation>
    </message>
    <message>
        <source>&lt;b&gt;The whole trace&lt;/b&gt;; spans within others count in both</source>
        <translation>&lt;b&gt;整个 trace&lt;/b&gt;；位于其他片段之内的片段在两者中都计入</translation>
    </message>
    <message>
        <source>&lt;b&gt;%1&lt;/b&gt;&lt;br&gt;%2&lt;br&gt;%3 to %4: &lt;b&gt;%5&lt;/b&gt;</source>
        <translation>&lt;b&gt;%1&lt;/b&gt;&lt;br&gt;%2&lt;br&gt;%3 至 %4：&lt;b&gt;%5&lt;/b&gt;</translation>
    </message>
    <message>
        <source>&lt;br&gt;category %1</source>
        <translation>&lt;br&gt;类别 %1</translation>
    </message>
    <message>
        <source>&lt;b&gt;idle %1&lt;/b&gt;, %2&lt;br&gt;%3 to %4</source>
        <translation>&lt;b&gt;空闲 %1&lt;/b&gt;，%2&lt;br&gt;%3 至 %4</translation>
    </message>
    <message>
        <source>overlaps and gaps between calls</source>
        <translation>调用之间的重叠与间隔</translation>
    </message>
    <message>
        <source>all others</source>
        <translation>其余</translation>
    </message>
    <message>
        <source>The step takes %1 here and %2 by its plan</source>
        <translation>该步在此用时 %1，按其方案为 %2</translation>
    </message>
    <message>
        <source>, %1: %2</source>
        <translation>，%1：%2</translation>
    </message>
    <message>
        <source>. This is one draw of the response lengths (seed 0), in which whoever sends at once shares the links; plans state means over draws.</source>
        <translation>。这是回复长度的一次抽样（种子 0），其中同时发送者共享链路；方案给出的是多次抽样的均值。</translation>
    </message>
    <message>
        <source>%1: %2 processes, %3 threads, %4 spans</source>
        <translation>%1：%2 个进程，%3 个线程，%4 个片段</translation>
    </message>
    <message>
        <source>; %1 events are no spans and left out (counters, flows, instants)</source>
        <translation>；%1 个事件不是片段，已略去（计数器、流、瞬时事件）</translation>
    </message>
    <message>
        <source>no event</source>
        <translation>不是事件</translation>
    </message>
    <message>
        <source>an event, as {&quot;ph&quot;: &quot;X&quot;, ...}</source>
        <translation>一个事件，如 {&quot;ph&quot;: &quot;X&quot;, ...}</translation>
    </message>
    <message>
        <source>too many values within values</source>
        <translation>嵌套层数过多</translation>
    </message>
    <message>
        <source>more spans than the window shows</source>
        <translation>片段多于窗口能显示的数量</translation>
    </message>
    <message>
        <source>a part of the trace: at most 10,000,000 spans</source>
        <translation>trace 的一部分：最多 10,000,000 个片段</translation>
    </message>
    <message>
        <source>an end before its beginning</source>
        <translation>结束早于开始</translation>
    </message>
    <message>
        <source>a ts that is not before that of its B</source>
        <translation>不早于其 B 的 ts</translation>
    </message>
    <message>
        <source>no ph</source>
        <translation>没有 ph</translation>
    </message>
    <message>
        <source>no ts that is a time</source>
        <translation>没有表示时间的 ts</translation>
    </message>
    <message>
        <source>ts and dur as numbers of microseconds</source>
        <translation>以微秒数表示的 ts 和 dur</translation>
    </message>
    <message>
        <source>a negative dur</source>
        <translation>负的 dur</translation>
    </message>
    <message>
        <source>more threads than the window shows</source>
        <translation>线程多于窗口能显示的数量</translation>
    </message>
    <message>
        <source>a part of the trace: at most 20,000 threads</source>
        <translation>trace 的一部分：最多 20,000 个线程</translation>
    </message>
    <message>
        <source>no traceEvents</source>
        <translation>没有 traceEvents</translation>
    </message>
    <message>
        <source>a Chrome trace: a list of events, or an object with traceEvents</source>
        <translation>Chrome trace：事件列表，或带有 traceEvents 的对象</translation>
    </message>
    <message>
        <source>no span</source>
        <translation>没有片段</translation>
    </message>
    <message>
        <source>events that last: X, or B and E</source>
        <translation>有时长的事件：X，或 B 与 E</translation>
    </message>
    <message>
        <source>a trace of more than 100 years</source>
        <translation>超过 100 年的 trace</translation>
    </message>
    <message>
        <source>no file that can be read</source>
        <translation>不是可读取的文件</translation>
    </message>
    <message>
        <source>a Chrome trace</source>
        <translation>Chrome trace</translation>
    </message>
    <message>
        <source>more than 2 GiB</source>
        <translation>超过 2 GiB</translation>
    </message>
    <message>
        <source>a part of the trace</source>
        <translation>trace 的一部分</translation>
    </message>
    <message>
        <source>a plan, a project, a trace or a model&apos;s config.json</source>
        <translation>方案、项目、trace或模型的 config.json</translation>
    </message>
    <message>
        <source>Margin: none, another plan is as good.</source>
        <translation>裕度：无，另一方案同样好。</translation>
    </message>
    <message>
        <source>Margin: another plan would win if it took %1 less than predicted and this one %1 more.</source>
        <translation>裕度：若另一方案比预测短 %1，而此方案比预测长 %1，则另一方案胜出。</translation>
    </message>
    <message>
        <source>%1 The constants leave that open (it is %2 standard deviations of the difference): take the two as equally good.</source>
        <translation>%1以现有常数无法排除这种情况（仅为差值的 %2 个标准差）：可视两者同样好。</translation>
    </message>
    <message>
        <source>%1 By the constants that is unlikely: it is %2 standard deviations of the difference.</source>
        <translation>%1按现有常数这不太可能：那是差值的 %2 个标准差。</translation>
    </message>
    <message>
        <source>perhaps %1 a step instead of %2: %3 less, fits with %4 %</source>
        <translation>每步或许 %1，而非 %2：少 %3，放得下的概率为 %4 %</translation>
    </message>
    <message>
        <source>The changes below are priced by these constants: they are guesses. Measure one before you rely on it.</source>
        <translation>下列改动按这些常数计算，只是猜测。采用前请先实测。</translation>
    </message>
    <message>
        <source>The prediction against what was measured: below 0 it is too short</source>
        <translation>预测相对于实测：小于 0 表示预测偏短</translation>
    </message>
    <message>
        <source>stopped (%1)</source>
        <translation>已停止（%1）</translation>
    </message>
    <message>
        <source>failed (%1)</source>
        <translation>失败（%1）</translation>
    </message>
    <message>
        <source>%1 steps were measured; its ranks left nothing here</source>
        <translation>已测得 %1 步；各 rank 未在此留下任何信息</translation>
    </message>
    <message>
        <source>Why nothing was written</source>
        <translation>为何未写入任何文件</translation>
    </message>
    <message>
        <source>%1, less than the predictions may be off</source>
        <translation>%1，小于预测可能的误差</translation>
    </message>
    <message>
        <source>Settings in which runs differ</source>
        <translation>各运行不同的设置</translation>
    </message>
    <message>
        <source>&lt;b&gt;Settings in which they differ&lt;/b&gt;</source>
        <translation>&lt;b&gt;它们不同的设置&lt;/b&gt;</translation>
    </message>
    <message>
        <source>Their run.yaml and plan.json say the same.</source>
        <translation>它们的 run.yaml 和 plan.json 内容相同。</translation>
    </message>
    <message>
        <source>Not all of them have a run.yaml or plan.json to compare.</source>
        <translation>并非每个都有可供比较的 run.yaml 或 plan.json。</translation>
    </message>
    <message>
        <source>one step off</source>
        <translation>提前一步</translation>
    </message>
    <message>
        <source>stalled</source>
        <translation>停滞</translation>
    </message>
    <message>
        <source>the run has no plan: nothing is compared with a prediction</source>
        <translation>该运行没有方案：没有可与之比较的预测</translation>
    </message>
    <message>
        <source>held against the plan %1, which was chosen for it</source>
        <translation>与为其选定的方案 %1 比较</translation>
    </message>
    <message>
        <source>%1; it was asked to pause, and does once this step has ended</source>
        <translation>%1；已请求暂停，本步结束后暂停</translation>
    </message>
    <message>
        <source>Only who started the run knows what plan it ran</source>
        <translation>只有启动该运行的人知道它执行的是哪个方案</translation>
    </message>
    <message>
        <source>Choose the plan that ran...</source>
        <translation>选择所执行的方案...</translation>
    </message>
    <message>
        <source>It ran the plan on Explore: %1</source>
        <translation>它执行的是“探索”页上的方案：%1</translation>
    </message>
    <message>
        <source>The plan that ran</source>
        <translation>所执行的方案</translation>
    </message>
    <message>
        <source>What was measured: %1.</source>
        <translation>测量值：%1。</translation>
    </message>
    <message>
        <source>%1 is no log of a run: no step of metrics.jsonl or of verl&apos;s console is in it so far</source>
        <translation>%1 不是运行的日志：其中目前没有 metrics.jsonl 或 verl 控制台的步</translation>
    </message>
    <message>
        <source>Follow a log</source>
        <translation>跟踪日志</translation>
    </message>
    <message>
        <source>Logs (*.log *.out *.txt *.jsonl);;All files (*)</source>
        <translation>日志 (*.log *.out *.txt *.jsonl);;所有文件 (*)</translation>
    </message>
    <message>
        <source>Follow a &amp;log of verl...</source>
        <translation>跟踪 verl 日志(&amp;L)...</translation>
    </message>
    <message>
        <source>Means over all steps but those of the warm-up.</source>
        <translation>除预热外所有步的平均值。</translation>
    </message>
    <message>
        <source>Step %1 is done once more, and its metrics and samples are replaced. </source>
        <translation>第 %1 步会重做，其指标和样本会被替换。</translation>
    </message>
    <message>
        <source>Steps %1 to %2 are done once more, and their metrics and samples are replaced. </source>
        <translation>第 %1 至 %2 步会重做，其指标和样本会被替换。</translation>
    </message>
    <message>
        <source>The pinned plans are in no file; a project has them.</source>
        <translation>固定的方案不在任何文件中；项目会保存它们。</translation>
    </message>
    <message>
        <source>The question is in no file; a project has it.</source>
        <translation>问题不在任何文件中；项目会保存它。</translation>
    </message>
    <message>
        <source>That is no token: it has %1 letters, not 64 hexadecimal digits.</source>
        <translation>这不是令牌：它有 %1 个字符，而不是 64 位十六进制数字。</translation>
    </message>
    <message>
        <source>, 1 token</source>
        <translation>，1 个 token</translation>
    </message>
    <message>
        <source>Writing %1: %2 %</source>
        <translation>正在写入 %1：%2 %</translation>
    </message>
    <message>
        <source>Writing a file</source>
        <translation>正在写入文件</translation>
    </message>
    <message>
        <source>&amp;Pictures (png)</source>
        <translation>图片 (png)(&amp;P)</translation>
    </message>
    <message>
        <source>Dra&amp;wings (svg)</source>
        <translation>矢量图 (svg)(&amp;W)</translation>
    </message>
    <message>
        <source>&amp;Tables (csv)</source>
        <translation>表格 (csv)(&amp;T)</translation>
    </message>
    <message>
        <source>&amp;Data for programs (json)</source>
        <translation>供程序使用的数据 (json)(&amp;D)</translation>
    </message>
    <message>
        <source>A &amp;report (html)</source>
        <translation>报告 (html)(&amp;R)</translation>
    </message>
    <message>
        <source>Pages and views</source>
        <translation>页面与视图</translation>
    </message>
    <message>
        <source>&amp;All</source>
        <translation>全选(&amp;A)</translation>
    </message>
    <message>
        <source>&amp;None</source>
        <translation>全不选(&amp;N)</translation>
    </message>
    <message>
        <source>&amp;Export</source>
        <translation>导出(&amp;E)</translation>
    </message>
    <message>
        <source>the page %1</source>
        <translation>“%1”页</translation>
    </message>
    <message>
        <source>%1 files written into %2</source>
        <translation>已将 %1 个文件写入 %2</translation>
    </message>
    <message>
        <source>Export views</source>
        <translation>导出视图</translation>
    </message>
</context>
</TS>
